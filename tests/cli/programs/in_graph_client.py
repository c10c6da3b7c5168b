"""In-graph replication: one client builds a tower on each server. Usage: in_graph_client.py address ..."""

import sys

import tensorflow as tf

addresses = sys.argv[1:]
with tf.device("/job:worker/task:0"):
    w = tf.Variable(5.0, name="w")
towers = []
for i in range(len(addresses)):
    with tf.device("/job:worker/task:%d" % i), tf.name_scope("tower_%d" % i):
        towers.append(tf.gradients(tf.square(w - float(i)), w)[0])
with tf.device("/job:worker/task:0"):
    update = w.assign_sub(0.25 * tf.add_n(towers) / len(towers))
with tf.Session("grpc://" + addresses[0]) as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(60):
        value = sess.run(update)
    print("w settles at the mean of the towers' targets: %.2f" % value)
