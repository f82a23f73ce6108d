"""What can be asked; `executor.registry` knows them by name."""
