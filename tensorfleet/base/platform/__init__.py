"""Parts of TensorFlow besides graphs: logging, flags, files, versions."""
