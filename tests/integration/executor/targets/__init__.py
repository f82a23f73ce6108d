"""Tests of `executor.targets`."""
