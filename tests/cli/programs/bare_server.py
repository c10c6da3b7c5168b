"""A server without a program: clients come from elsewhere. Usage: bare_server.py task address ..."""

import sys

import tensorflow as tf

cluster = tf.train.ClusterSpec({"worker": sys.argv[2:]})
server = tf.train.Server(cluster, job_name="worker", task_index=int(sys.argv[1]))
print("listening at", server.target)
server.join()
