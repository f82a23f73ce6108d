"""The seeded simulator: real queues and real storage workers, over the memory forms, in virtual time.

    virtual_loop.py   an event loop whose clock jumps to the next timer
    profiles.py       which faults a seed brings, and how often
    world.py          all that the actors of one run share: clock, dice, log, tables, trace
    server.py         the simulated Redis: wake-ups, tasks and heartbeats beside the log, and their loss
    ports.py          every call of every port, each with a fate of its own
    process.py        what runs, dies at any call and is started again
    executor.py, storage_process.py, coordinator.py (reconcile.py), foreign.py, mischief.py    the actors
    run.py            one seed, from start to verdict
    checker.py        what must hold whatever happened
    campaign.py       many seeds, and what must have happened at least once

`python -m tests.simulation --seed N --trace` plays one seed again; the same seed is the same run, always.
"""

from tests.simulation.campaign import prove

__all__ = ["prove"]
