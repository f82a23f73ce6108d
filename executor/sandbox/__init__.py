"""Where untrusted code runs: no network, no secrets, nothing shared."""
