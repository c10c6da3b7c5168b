"""Reading and parsing of input: files, readers, CSV, `tf.train.Example`, summaries."""
