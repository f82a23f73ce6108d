"""Valkey and PostgreSQL out of the box: on Unix sockets, running while any process uses them.

How it holds together. Every user keeps a shared lock on one file. The first to find no guardian
takes the guardian's lock and hands it, still locked, to a new guardian process; so there is never
more than one, however many start at the same time. The guardian runs both servers, restarts the one
that dies, and queues for the exclusive lock on the users' file: it gets it the moment the last
user is gone, however that user died, stops both servers and ends. Each server in turn inherits a
lock of its own: whether anything of it still lives is a question the kernel answers, so that the
guardian after a killed one adopts the servers it left, and never starts a second beside them.
"""

from scoreline.local.embedded.client import embedded_servers
from scoreline.local.embedded.errors import EmbeddedServerError

__all__ = ["EmbeddedServerError", "embedded_servers"]
