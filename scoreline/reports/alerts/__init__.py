"""Alerts of one batch, evaluated without Prometheus: `scoreline batch status --alert`."""
