"""The seeded simulator: real coordinators, executors and storage workers, in memory and in virtual time.

    virtual_loop.py   an event loop whose clock jumps to the next timer
    profiles.py       which faults a seed brings, and how often
    world.py          all that the actors of one run share: clock, dice, log, tables, trace
    server.py         the simulated Redis: wake-ups, tasks and heartbeats beside the log, and their loss
    ports.py, control_ports.py    every call of every port, each with a fate of its own
    process.py        what runs, dies at any call and is started again
    plans.py          what people hand in and ask for
    coordinator.py, executor.py, storage_process.py    the real services, and people
    embedder.py, foreign.py, fault_injection.py    writers without a coordinator, foreign producers, faults
    payments.py       what must hold whenever a target or a judge is asked
    run.py            one seed, from start to verdict
    checker.py        what must hold whatever happened
    campaign.py       many seeds, and what must have happened at least once

`python -m tests.simulation --seed N --trace` plays one seed again; the same seed is the same run, always.
"""

from tests.simulation.campaign import prove

__all__ = ["prove"]
