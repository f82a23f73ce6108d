"""Everything that runs on this machine: embedded servers, the process manager, local runs and the demo."""
