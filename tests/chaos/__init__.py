"""The fault matrix on real servers, with real processes that are really killed.

    faults.py         the list of rows; faults_*.py what each does
    run.py            one run: a small batch, its writers, what must be true in the end
    matrix.py         one row, one seed, from start to findings
    proof.py          many runs, a table, and the seldom paths that must have been taken
    checker.py        what must hold whatever happened; findings.py how it is printed
    world.py          servers, links and workers, and what breaks them
    link.py           a way to a server that can be cut, silent, slow or half closed
    worker_group.py   workers that are restarted; worker.py what one that stores runs
    executor.py       a writer in a process of its own; control.py the little of a coordinator it needs
    fleet.py          the real coordinators and executors around a batch; fleet_members.py what each runs
    submitting.py     the process that submits the batch
    answering.py      what the fleet asks, and who judges; fleet_checker.py what must hold of its batch
    children.py       processes that start in a moment; call_log.py what they leave behind
    failpoints.py     named points at which a process kills itself
    mutations.py      producers that do wrong; witness.py what the log acknowledged
    regressions.txt   runs that once went wrong

`python -m tests.chaos --fault NAME --seed N --runs 1` runs one again: the same lots, other timings.
"""

from tests.chaos.proof import prove

__all__ = ["prove"]
