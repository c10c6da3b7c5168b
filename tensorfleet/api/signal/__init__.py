"""`tf.signal`: frames, windows, short-time transforms, mel scales."""
