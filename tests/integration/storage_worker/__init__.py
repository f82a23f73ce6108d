"""Tests of storage_worker on real servers."""
