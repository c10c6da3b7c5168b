"""`tf.summary`: what TensorBoard shows, and the event files it is written to."""
