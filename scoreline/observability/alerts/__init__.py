"""Alerts: one table of definitions, from which Prometheus rules and command-line checks are derived."""
