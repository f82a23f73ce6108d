"""The front door: the command line, settings, embedded servers, and the processes behind a command."""
