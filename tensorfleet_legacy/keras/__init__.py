"""`tf.keras`: its layers, losses and small parts, for use inside a graph. No `Model.fit`: the session trains."""
