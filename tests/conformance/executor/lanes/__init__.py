"""Tests of `executor.lanes`."""
