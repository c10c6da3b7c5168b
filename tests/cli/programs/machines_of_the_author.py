"""A cluster of machines that nobody has; the task from two arguments without names; a server with something behind its join."""

import sys

import tensorflow as tf

job_name = sys.argv[1]
task_index = int(sys.argv[2])
cluster = tf.train.ClusterSpec({"ps": ["240.0.0.1:2222"], "worker": ["240.0.0.2:2222", "240.0.0.3:2222"]})
server = tf.train.Server(cluster, job_name=job_name, task_index=task_index)
if job_name == "ps":
    server.join()
else:
    with tf.device("/job:ps/task:0"):
        more = tf.get_variable("total", initializer=0).assign_add(1)
    with tf.train.MonitoredTrainingSession(
        "grpc://240.0.0.%d:2222" % (2 + task_index), task_index == 0
    ) as session:
        print("counted:", session.run(more) > 0)
    steps = 1
print(steps)
