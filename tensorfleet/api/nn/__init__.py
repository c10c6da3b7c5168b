"""What users find under `tf.nn` beyond single operations."""
