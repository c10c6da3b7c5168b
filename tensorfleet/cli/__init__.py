"""The `tensorfleet` command: scripts as they are, on one machine or on many."""
