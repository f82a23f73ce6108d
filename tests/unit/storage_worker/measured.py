"""A storage worker whose metrics are read."""

STRAIGHT = "queued provisioning running responded scored completed"
