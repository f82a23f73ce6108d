"""The history of one evaluation: every entry, its place in the order of arrival, and its disposition.

sources.py           reads Postgres and the Redis stream               (I/O)
history_builder.py   builds an `EvaluationHistory` from the records    (pure)
past_state.py        cuts a history at an earlier moment               (pure)
comparison.py        aligns two histories                              (pure)
*_text.py            render them as text, document.py as JSON          (pure)
follow.py            prints updates until the evaluation ends          (I/O)
"""
