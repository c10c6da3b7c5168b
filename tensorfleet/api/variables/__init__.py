"""Variables as users hold them: `tf.Variable`, `tf.get_variable`, scopes, initializers, partitions."""
