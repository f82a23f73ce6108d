"""The control plane: accepts batches, opens attempts, publishes, and looks after what has not moved."""
