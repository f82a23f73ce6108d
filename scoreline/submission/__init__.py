"""Submission: a plan and its cases, turned into evaluations."""
