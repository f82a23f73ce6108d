"""Tests of `grafana.pages`."""
