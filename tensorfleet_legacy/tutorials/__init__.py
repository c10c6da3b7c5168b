"""`tf.examples.tutorials.mnist`: what the tutorials' scripts import, and ten thousand digits to train on."""
