"""Tests of `executor.sandbox`."""
