"""`tf.summary`: summaries for TensorBoard, and the event files that hold them."""
