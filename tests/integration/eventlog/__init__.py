"""Tests of `eventlog`."""
