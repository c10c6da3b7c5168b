"""Parts of TensorFlow's inside, under `tf.python`, which scripts, old libraries and its own tests reach for."""
