"""`tf.linalg.LinearOperator` and its kinds: matrices that are multiplied and solved with, never stored whole."""
