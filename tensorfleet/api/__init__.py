"""The public API: what `tf.` offers on top of graphs and sessions."""
