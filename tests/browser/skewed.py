"""Trains on parameter servers with two faults: a large variable is whole on ps/0, and worker/2 sleeps in each step."""

import argparse
import os
import time

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--job_name")
parser.add_argument("--task_index", type=int)
parser.add_argument("--ps_hosts")
parser.add_argument("--worker_hosts")
args = parser.parse_args()

cluster = tf.train.ClusterSpec({"ps": args.ps_hosts.split(","), "worker": args.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=args.job_name, task_index=args.task_index)
if args.job_name == "ps":
    server.join()

with tf.device("/job:ps/task:0"):
    step = tf.train.get_or_create_global_step()
    table = tf.get_variable("embeddings", [200_000], initializer=tf.ones_initializer())
with tf.device("/job:ps/task:1"):
    weight = tf.get_variable("dense/weight", [100], initializer=tf.ones_initializer())
with tf.device(f"/job:worker/task:{args.task_index}"):
    loss = tf.reduce_mean(tf.square(table), name="loss") + tf.reduce_mean(tf.square(weight))
train = tf.train.GradientDescentOptimizer(10.0).minimize(loss, global_step=step)
tf.summary.scalar("loss", loss)

with tf.train.MonitoredTrainingSession(
    server.target, is_chief=args.task_index == 0, checkpoint_dir="model", save_summaries_steps=20
) as session:
    print(f"training begins at {time.time():f}", flush=True)
    while not os.path.exists("end"):
        session.run([train, loss])
        time.sleep(0.3 if args.task_index == 2 else 0.03)
