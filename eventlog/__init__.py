"""Vocabulary of all packages: the events of an evaluation, their order, and the legal transitions.

Read `events.py` for the words, `lifecycle.py` for the grammar, `timeline.py` for how a jumbled
stream becomes a story again, and `log.py` for the contract that every form of the log keeps.
Nothing here knows a database.
"""
