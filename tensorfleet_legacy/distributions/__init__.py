"""`tf.distributions`: random variables with their densities, moments and divergences."""
