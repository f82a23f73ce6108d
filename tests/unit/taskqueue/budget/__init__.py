"""Tests of `taskqueue/budget`."""
