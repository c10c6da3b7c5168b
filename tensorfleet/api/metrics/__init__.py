"""`tf.metrics`: measures that add up over many batches."""
