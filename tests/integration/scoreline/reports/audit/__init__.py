"""Tests of `scoreline/reports/audit`."""
