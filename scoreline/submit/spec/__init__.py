"""The spec: a file and flags, validated together into one plan."""
