"""Tests of `coordinator.provider_batches`."""
