"""Answers from a provider's batch API: requested together at half price, and scored like all others."""
