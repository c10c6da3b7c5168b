"""`tf.image`: transformations built from the image ops."""
