"""Tests of `projections.store`."""
