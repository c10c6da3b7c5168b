"""The cluster from TF_CONFIG; each worker adds to a shared count through tf.compat.v1."""

import json
import os

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
cluster = tf.train.ClusterSpec(config["cluster"])
server = tf.train.Server(cluster, job_name=task["type"], task_index=task["index"])
if task["type"] == "ps":
    server.join()
else:
    with tf.device("/job:ps/task:0"):
        count = tf.Variable(0, name="count")
        add = count.assign_add(1)
    is_chief = task["index"] == 0
    with tf.Session(server.target) as sess:
        if is_chief:
            sess.run(tf.global_variables_initializer())
        else:
            ready = tf.report_uninitialized_variables()
            while len(sess.run(ready)):
                pass
        for _ in range(10):
            value = sess.run(add)
    print("%s %d ended at a count of at least ten: %s" % (task["type"], task["index"], value >= 10))
