"""Runs people's Python functions in processes of their own, which may hang, exit or crash."""
