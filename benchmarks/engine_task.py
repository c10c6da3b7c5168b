"""The script that benchmarks/engines.py runs on each engine: one ps and one worker, which prints its times as JSON."""

import json
import time

import tensorflow as tf
from cluster_works import network

tf.app.flags.DEFINE_string("ps_hosts", "", "")
tf.app.flags.DEFINE_string("worker_hosts", "", "")
tf.app.flags.DEFINE_string("job_name", "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
FLAGS = tf.app.flags.FLAGS
BLOCKS, STEPS = 9, 300

cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
me = "/job:worker/task:0"
with tf.device(tf.train.replica_device_setter(worker_device=me, cluster=cluster)):
    step, feed, _ = network(100, False)(tf, me, 0, 1)
with tf.train.MonitoredTrainingSession(master=server.target) as session:
    session.run(step, feed)
    first = time.time()
    blocks = []
    for _ in range(BLOCKS):
        began = time.perf_counter()
        for _ in range(STEPS):
            session.run(step, feed)
        blocks.append((time.perf_counter() - began) / STEPS)
# The first block compiles. The fastest counts: other load can only make a block slower.
print(json.dumps({"first": first, "seconds": min(blocks[1:]), "last": time.time()}), flush=True)
