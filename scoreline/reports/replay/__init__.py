"""The life of one evaluation, told again: what arrived, in which order, and what became of it.

sources.py   reads Postgres and the Redis stream        (I/O)
builder.py   makes a `EvaluationHistory` of what was read           (pure)
asof.py      cuts a history at a moment of its past       (pure)
diff.py      holds two of them side by side             (pure)
view*.py     shows them to a person, document.py to a machine
follow.py    goes on while the evaluation does
"""
