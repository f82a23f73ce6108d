"""Tests of `taskqueue`."""
