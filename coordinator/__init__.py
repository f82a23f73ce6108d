"""The control plane: accepts batches, opens attempts, publishes and reconciles them; one leader."""
