"""`tf.fleet`: features that TensorFlow does not have."""
