"""A script that forks its own tasks, at ports of its own."""

import socket
from multiprocessing import get_context

import tensorflow as tf


def free():
    with socket.create_server(("localhost", 0)) as s:
        return "localhost:%d" % s.getsockname()[1]


def task(spec, job, index):
    server = tf.train.Server(tf.train.ClusterSpec(spec), job_name=job, task_index=index)
    if job == "ps":
        server.join()
        print("the server has ended")
        return
    with tf.device("/job:ps/task:0"):
        more = tf.get_variable("total", initializer=0).assign_add(1)
    with tf.train.MonitoredTrainingSession(server.target, index == 0) as session:
        print(f"counted: {session.run(more) > 0}")


if __name__ == "__main__":
    cluster = {"ps": [free()], "worker": [free(), free()]}
    for job, tasks in cluster.items():
        for i in range(len(tasks)):
            get_context("fork").Process(target=task, args=(cluster, job, i)).start()
