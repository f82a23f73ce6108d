"""Tests of `projections.database`."""
