"""Answers from a provider's batches: asked together, at half the price, and scored like all others."""
