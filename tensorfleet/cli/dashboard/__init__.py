"""The page of a run: asks its tasks for their counters, keeps them, finds what is slow, and serves all that."""
