"""What ordinary functions of `tf` do with ragged tensors: indexing, arithmetic, sums, joining."""
