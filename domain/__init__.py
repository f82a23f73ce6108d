"""The domain model that queue, executors and coordinator share; it imports no other package."""
