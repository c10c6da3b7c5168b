"""`tf.feature_column`: from the columns of a table to the inputs of a model."""
