"""Tests of `executor.evaluators`."""
