"""Sparse tensors: arithmetic, order, conversion, serialization."""
