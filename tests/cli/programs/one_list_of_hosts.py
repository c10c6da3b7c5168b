"""All tasks are of one job, told by one list: the first computes on all of them, the others serve."""

import tensorflow as tf

tf.app.flags.DEFINE_string("hosts", "", "Where the tasks are, separated by commas")
tf.app.flags.DEFINE_integer("task_index", 0, "Which of them this is")
FLAGS = tf.app.flags.FLAGS


def main(_):
    hosts = FLAGS.hosts.split(",")
    server = tf.train.Server({"worker": hosts}, job_name="worker", task_index=FLAGS.task_index)
    if FLAGS.task_index > 0:
        server.join()
        return
    parts = []
    for i in range(len(hosts)):
        with tf.device("/job:worker/task:%d" % i):
            parts.append(tf.constant(i + 1))
    with tf.Session(server.target) as sess:
        print("the sum over", len(hosts), "tasks is", sess.run(tf.add_n(parts)))


if __name__ == "__main__":
    tf.app.run()
