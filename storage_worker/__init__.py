"""The service between the log and the tables: wake-ups in, ordered and checked histories out.

`storage.py` is the whole path of one batch of wake-ups; `sighting.py` its pure middle; `app.py` hangs
it into FastStream; the loops beside it (`sweep.py`, `claims.py`) find what no wake-up tells of.
"""
