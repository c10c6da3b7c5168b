"""`tf.fleet`: looking into a session, beyond what TensorFlow offers."""
