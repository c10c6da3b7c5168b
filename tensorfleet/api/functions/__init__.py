"""`tf.function`: Python functions that become functions of the graph, once for each kind of arguments."""
