"""Tests of `grafana`."""
