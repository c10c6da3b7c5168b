"""Segments, the parts of a step that XLA compiles: interpreted first, then compiled."""
