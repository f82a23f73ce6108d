"""Storage worker: consumes wake-ups, puts each stream's events in order and commits them to the tables.

`storage.py` is the whole path of one batch of wake-ups; `stream_diff.py` is its pure middle. `app.py` wires
both into FastStream; `maintenance.py` runs the loops that find what no wake-up names.
"""
