"""The few parts of `tf.contrib` that scripts use most."""
