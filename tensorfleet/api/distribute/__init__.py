"""`tf.distribute`: one program for several replicas of a model, on the devices of a machine or of a cluster."""
