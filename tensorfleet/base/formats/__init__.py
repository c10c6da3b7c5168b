"""Files in TensorFlow's own formats."""
