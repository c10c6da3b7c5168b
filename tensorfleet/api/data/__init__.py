"""`tf.data`: datasets, their parts, and the iterators that run through them."""
