"""`tf.losses`: weighted losses, and the collection that gathers them."""
