"""Measurements: each prints a ratio or a distribution taken in one run. Never part of the tests."""
