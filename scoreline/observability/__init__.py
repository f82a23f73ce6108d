"""Telemetry of processes: the only package that wires the OpenTelemetry SDK; alerts and logs.

Packages use the API, which does nothing until `telemetry_for` has wired something behind it.
"""
