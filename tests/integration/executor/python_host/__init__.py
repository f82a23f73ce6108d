"""Tests of `executor/python_host`."""
