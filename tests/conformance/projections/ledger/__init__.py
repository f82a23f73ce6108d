"""Tests of `projections.ledger`."""
