"""`tf.layers`: building blocks that make and remember their own variables."""
