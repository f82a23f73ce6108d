"""Observing: real work under a real Prometheus, and what every panel of every dashboard shows of it."""
