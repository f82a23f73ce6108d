"""A migration that databases have applied is never edited."""

from hashlib import sha256
from pathlib import Path

MIGRATIONS = Path(__file__).parents[2] / "projections" / "migrations"
APPLIED = {
    "0001_core.sql": "488bf41d9a60c8e6",
    "0002_roles.sql": "ac52dfa7417e16ad",
    "0003_rebuild.sql": "e6794d3366b81a6d",
    "0004_states.sql": "89686e4b05aadba7",
    "0005_batches.sql": "ba641203f609a606",
    "0006_budgets.sql": "5d07d3718c5abb42",
    "0007_provider_batches.sql": "609b07a0cfb94582",
    "0008_idle_batches.sql": "7333b53ee2895ce4",
    "0009_dashboards.sql": "596f9bacb33a7cdc",
    "0010_runs.sql": "4c9c1a566ca0ca68",
    "0011_budget_accounts.sql": "1275f464a63990f8",
    "0014_pass_rate.sql": "3cbdb402b0c8843b",
    "0017_finished_batches.sql": "1ab3f6e7e8196b4a",
    "0018_progress.sql": "185e888d546ac5a6",
}
"""The beginning of each file's SHA-256: a new migration adds a line, and no line changes."""


def test_migrations_are_as_databases_have_applied_them() -> None:
    """`scoreline` refuses a database whose migrations differ from its own."""
    files = sorted(MIGRATIONS.glob("*.sql"))
    assert {path.name: sha256(path.read_bytes()).hexdigest()[:16] for path in files} == APPLIED
