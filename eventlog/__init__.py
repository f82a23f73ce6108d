"""The events of an evaluation, their order, and the legal transitions.

`events.py` defines the events, `lifecycle.py` the legal transitions, `timeline.py` how a stream that
arrived out of order is replayed, `log.py` the contract of every event log. Nothing here knows a database.
"""
