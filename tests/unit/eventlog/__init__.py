"""Tests of eventlog without servers."""
