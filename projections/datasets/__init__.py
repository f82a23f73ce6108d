"""Storage of imported datasets."""
