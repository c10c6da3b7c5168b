"""A step on a cluster, traced, as a Chrome timeline."""

import json

import tensorflow as tf
from tensorflow.python.client import timeline

tf.app.flags.DEFINE_string("ps_hosts", "", "")
tf.app.flags.DEFINE_string("worker_hosts", "", "")
tf.app.flags.DEFINE_string("job_name", "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
FLAGS = tf.app.flags.FLAGS

cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
else:
    with tf.device("/job:ps/task:0"):
        a = tf.Variable(tf.ones([100, 100]))
    with tf.device("/job:worker/task:0"):
        b = tf.reduce_sum(tf.matmul(a, a))
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    metadata = tf.RunMetadata()
    with tf.Session(server.target) as sess:
        sess.run(tf.global_variables_initializer())
        value = sess.run(b, options=options, run_metadata=metadata)
    trace = timeline.Timeline(step_stats=metadata.step_stats).generate_chrome_trace_format()
    with open("timeline.json", "w") as f:
        f.write(trace)
    names = " ".join(e["args"]["name"] for e in json.loads(trace)["traceEvents"] if e["ph"] == "M")
    print("sum %d; traced ps: %s, worker: %s" % (value, "/job:ps" in names, "/job:worker" in names))
