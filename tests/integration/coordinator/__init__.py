"""Tests of `coordinator`."""
