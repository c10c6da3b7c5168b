"""Ragged tensors, and the ragged forms of `tf` functions: indexing, arithmetic, sums, joining."""
