"""The rules of the protocol searched exhaustively: every order of steps, every fault within a budget.

One evaluation, two executors, one or two coordinators, one or two storage workers, Redis and Postgres.
Read it in this order:

    world.py        what there is: parts that never change, each with a name
    rules.py        the rules, each of which can be switched off
    redis.py        what append.lua answers
    executor.py     takes tasks, runs, closes, acknowledges          more of it: claiming.py, sending.py
    storage.py      folds the stream into the row
    coordinator.py  decides what an evaluation needs                 opening.py carries it out
    nature.py       what no process decides: losses, duplicates, expiry, requests of users
    invariants.py   what must never be seen
    scenarios.py    which faults, how many, who takes part
    search.py       breadth first through all of it
    progress.py     from where no way leads to the end
    verdict.py      the result, printed as a history

`test_rules.py` shows for each rule what happens without it; `test_faithfulness.py` holds the model to
the code it stands for. Left out: wake-ups and their acknowledgement (a reader may always look again),
quarantine, pauses, and more than one evaluation.

`python -m tests.protocol_model` searches deeply and prints what it finds; `make test` runs a share.
"""

from tests.protocol_model.proof import prove

__all__ = ["prove"]
