"""What a process tells of itself: here the SDK of OpenTelemetry is wired, and nowhere else.

Rooms speak through the API, which is silent until `telemetry_for` has wired something behind it.
"""
