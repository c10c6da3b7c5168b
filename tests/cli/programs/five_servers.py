"""A notebook's way: all servers of a cluster in one process, a thread for each worker."""

import socket
import threading

import tensorflow as tf


def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


spec = {
    "ps": ["localhost:%d" % free_port() for _ in range(2)],
    "worker": ["localhost:%d" % free_port() for _ in range(3)],
}
cluster = tf.train.ClusterSpec(spec)
servers = {(j, i): tf.train.Server(cluster, j, i) for j in spec for i in range(len(spec[j]))}


def work(index):
    with tf.Graph().as_default():
        with tf.device(
            tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:%d" % index)
        ):
            total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
            add = total.assign_add(float(index + 1), use_locking=True)
        with tf.Session(servers["worker", index].target) as sess:
            if index == 0:
                sess.run(tf.global_variables_initializer())
                ready.set()
            ready.wait()
            for _ in range(10):
                sess.run(add)


ready = threading.Event()
threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
with tf.device("/job:ps/task:0"):
    total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
with tf.Session(servers["worker", 0].target) as sess:
    print("total %d" % sess.run(total))
