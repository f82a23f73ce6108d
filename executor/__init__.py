"""The data plane: takes tasks, calls targets, scores, and records what happened."""
