"""Keyset pages of a batch, its verification against the log, and its rebuild."""
