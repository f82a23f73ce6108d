"""Tests of `projections.folds`."""
