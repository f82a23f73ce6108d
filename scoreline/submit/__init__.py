"""Submission: a batch spec and its datasets become a batch of evaluations."""
