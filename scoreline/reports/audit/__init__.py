"""Whole batches against their log: verified, rebuilt, summed up."""
