"""The script that benchmarks/failover.py runs: each worker writes down when a step is finished, until it is told to end."""

import os
import time

import tensorflow as tf
from cluster_works import network

tf.app.flags.DEFINE_string("ps_hosts", "", "")
tf.app.flags.DEFINE_string("worker_hosts", "", "")
tf.app.flags.DEFINE_string("job_name", "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
FLAGS = tf.app.flags.FLAGS

cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
folder, index = os.environ["FAILOVER_FOLDER"], FLAGS.task_index
me, workers = f"/job:worker/task:{index}", cluster.num_tasks("worker")
sync = bool(os.environ["FAILOVER_SYNC"])
with tf.device(tf.train.replica_device_setter(worker_device=me, cluster=cluster)):
    train, feed, hooks = network(100, sync)(tf, me, index, workers)
with (
    open(os.path.join(folder, f"steps{index}"), "w", buffering=1) as steps,
    tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0, hooks=hooks) as session,
):
    while not os.path.exists(os.path.join(folder, "end")):
        session.run(train, feed)
        steps.write(f"{time.monotonic()}\n")
    if sync:
        os._exit(0)  # the other worker may wait for this one's gradients
