"""Batches in known states, for tests of their reports."""

OVER = "state = 'completed', finished_at = accepted_at + interval '90 seconds'"


POLLED = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'scoreline batch' AND query = 'COMMIT'"
