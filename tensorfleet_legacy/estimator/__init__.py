"""`tf.estimator`: a model function trained, evaluated, exported and used by one object, on one machine or a cluster."""
