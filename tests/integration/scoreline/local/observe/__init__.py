"""Tests of `scoreline/local/observe`."""
