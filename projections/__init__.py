"""What the log comes to: pure folds, and everything that touches Postgres.

`change.py` says what one evaluation's new events mean for the tables, `scorecard.py` and `progress.py`
fold them, `tables.py` is the contract that Postgres and the memory form keep. SQL lives in `.sql` files.
"""
