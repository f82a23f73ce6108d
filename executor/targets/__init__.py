"""Target types; `executor.registry` lists them by name."""
