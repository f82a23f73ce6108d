"""The escape corpus: programs that try to leave the sandbox, to take more than their limits, or to stay."""
