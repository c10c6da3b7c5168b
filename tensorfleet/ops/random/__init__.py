"""Random numbers: stateful, stateless, truncated."""
