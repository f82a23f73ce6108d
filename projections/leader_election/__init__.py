"""Leader election by advisory locks."""
