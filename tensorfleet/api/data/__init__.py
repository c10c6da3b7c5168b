"""`tf.data`: datasets, what they are made of, and the iterators that run through them."""
