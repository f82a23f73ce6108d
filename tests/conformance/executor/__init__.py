"""Tests of `executor`."""
