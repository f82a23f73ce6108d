"""The transactional projection: what a storage worker reads and commits, in PostgreSQL and in memory."""
