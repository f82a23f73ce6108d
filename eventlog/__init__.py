"""The event log: the events of an evaluation, their order, their storage in Redis, and the rules of both.

    events.py, payloads.py     the envelope of an event, and the data of each type
    lifecycle.py               the state machine, and `decide`: the next event of a writer
    log.py                     the contract of the log, in memory.py and in redis_streams.py (append.lua)
    event_queue.py, outbox.py  the writer: numbers, buffers, appends and re-appends events
    timeline.py                the reader: `replay` puts entries in order and applies them

This package uses no database.
"""
