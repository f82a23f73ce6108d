"""Fuzzing of everything that reads what others wrote: files, wire entries, replies, templates, patterns.

Each target takes bytes, and must end in a value or in an error that its module documents, within a bound
of CPU time and of memory. The short form is a part of `make test`; the long form is a command:

python -m tests.fuzz --minutes 10             every target, a table at the end
python -m tests.fuzz --minutes 2 --only yaml  those whose name has this word
python -m tests.fuzz --minutes 2 --json       one JSON object per target

An input that fails is reduced, written to `regressions/TARGET/`, and replayed by every later run.
"""
