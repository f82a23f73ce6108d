"""Batches as people see them: run, watched, listed, exported, compared."""
