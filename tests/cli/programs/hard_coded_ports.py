"""A cluster written into the script; the task from two flags with names of their own."""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--job", choices=["ps", "worker"])
parser.add_argument("--task", type=int)
args = parser.parse_args()

cluster = tf.train.ClusterSpec({"ps": ["localhost:23471"], "worker": ["localhost:23472", "localhost:23473"]})
server = tf.train.Server(cluster, job_name=args.job, task_index=args.task)
if args.job == "ps":
    server.join()
else:
    with tf.device("/job:ps/task:0/cpu:0"):
        a = tf.Variable(tf.truncated_normal(shape=[2]), dtype=tf.float32)
    with tf.device("/job:worker/task:%d/cpu:0" % args.task):
        b = a + 1.0
    with tf.Session("grpc://localhost:%d" % (23472 + args.task)) as sess:
        sess.run(tf.global_variables_initializer())
        print("%s:%d computed %s" % (args.job, args.task, sess.run(b).shape))
