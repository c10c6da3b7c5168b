"""What users type after `tf.image.`: transformations built from the image ops."""
