"""Tests of the storage worker without servers."""
