"""Tests of `projections/datasets`."""
