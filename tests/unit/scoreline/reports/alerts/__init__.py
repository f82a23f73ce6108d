"""Tests of `scoreline/reports/alerts`."""
