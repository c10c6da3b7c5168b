"""Running a TensorFlow script unchanged: imports, flags, host names, the environment."""
