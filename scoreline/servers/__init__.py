"""The Redis and the PostgreSQL that a command connects to: their checks and their errors in plain words."""
