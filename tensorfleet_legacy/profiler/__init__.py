"""`tf.profiler`: parameters, float operations and times of a graph, by name."""
