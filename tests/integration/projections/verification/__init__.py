"""Tests of `projections.verification`."""
