"""Tests of `scoreline/local/demo`."""
