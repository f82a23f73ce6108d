"""Tasks on their way to executors: the queue, the board of batches, and who is there to work."""
