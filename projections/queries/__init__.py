"""Read models: queries for status, reports, export and metrics."""
