"""Randomized runs of several batches with different limits on one lane, measured at the provider."""
