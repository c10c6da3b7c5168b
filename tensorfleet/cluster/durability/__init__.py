"""Durable parameter servers: a standby has what the primary has, so that no update is lost (decision 33)."""
