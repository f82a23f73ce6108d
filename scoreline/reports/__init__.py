"""Reports about batches and evaluations: status, list, export, compare, replay and audit."""
