"""Tests of `projections.sql`."""
