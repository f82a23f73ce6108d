"""The sandbox for untrusted code: no network, no secrets, nothing shared."""
