"""Parts of TensorFlow's inside, under `tf.python`, which its own tests and old libraries reach for."""
