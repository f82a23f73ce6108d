"""The coordinator's ledger: its store of batches, attempts and provider batches."""
