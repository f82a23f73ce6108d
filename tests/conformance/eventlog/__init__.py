"""Tests that hold every implementation of the event log to its contract."""
