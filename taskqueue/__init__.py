"""Tasks on their way to executors: the queue, the batch registry, and who is there to work."""
