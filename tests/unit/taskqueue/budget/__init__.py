"""Tests of `taskqueue.budget`."""
