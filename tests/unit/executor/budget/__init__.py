"""Tests of `executor.budget`."""
