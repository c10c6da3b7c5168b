"""Connections between tasks: handshake, framing, tensors as bytes, shared memory."""
