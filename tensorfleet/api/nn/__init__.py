"""`tf.nn` beyond single operations."""
