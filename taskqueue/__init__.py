"""The task queue, the batch registry, the executor registry and budget accounts."""
