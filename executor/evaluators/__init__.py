"""Who can judge; `executor.registry` knows them by name."""
