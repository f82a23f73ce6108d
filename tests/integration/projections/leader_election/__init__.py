"""Tests of `projections.leader_election`."""
