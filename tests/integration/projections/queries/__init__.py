"""Tests of `projections.queries`."""
