"""Tests of `providers`."""
