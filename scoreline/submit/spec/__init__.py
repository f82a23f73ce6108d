"""The spec: what a file and flags say, checked whole, as one plan."""
