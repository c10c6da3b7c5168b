"""A worker to trace: trains with a dataset, uses a queue on a ps, and loops over both ps. It goes on until it is ended.

traced_worker.py CLUSTER INDEX    (CLUSTER is JSON, jobs to addresses)
"""

import json
import sys

import tensorfleet as tf


def main():
    cluster, index = json.loads(sys.argv[1]), int(sys.argv[2])
    server = tf.train.Server(cluster, "worker", index)
    with tf.device(
        tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{index}")
    ):
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", [64, 32], initializer=tf.ones_initializer())
        v = tf.get_variable("v", [32, 4], initializer=tf.ones_initializer())
    with tf.device(f"/job:worker/task:{index}"):
        numbers = tf.data.Dataset.range(8).repeat().map(lambda i: tf.fill([64], tf.cast(i, tf.float32)))
        batch = numbers.batch(8).prefetch(2).make_one_shot_iterator().get_next()
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.matmul(batch, w), v)))
    train = tf.train.GradientDescentOptimizer(1e-9).minimize(loss, global_step=step)
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(100, [tf.float32], shapes=[[]], shared_name=f"tokens_{index}")
        put, taken = queue.enqueue(1.0), queue.dequeue()
        a = tf.get_variable("a", [], initializer=tf.ones_initializer())
    with tf.device("/job:ps/task:1"):
        b = tf.get_variable("b", [], initializer=tf.ones_initializer())

    def body(i, total):
        with tf.device("/job:ps/task:0"):
            total = total + a.read_value()
        with tf.device("/job:ps/task:1"):
            total = total + b.read_value()
        return i + 1, total

    _, total = tf.while_loop(lambda i, total: i < 3, body, [tf.constant(0), tf.constant(0.0)])
    with tf.Session(server.target) as sess:
        if index == 0:
            sess.run(tf.global_variables_initializer())
        while sess.run(tf.report_uninitialized_variables()).size:
            pass
        sess.run([loss, train])
        print("works", flush=True)
        while True:
            sess.run([loss, train])
            sess.run(put)
            sess.run(taken)
            sess.run(total)


main()
