"""Workers that do not wait for each other: device filters; the step from a hook, the input from tf.data."""

import tensorflow as tf

flags = tf.flags
flags.DEFINE_list("ps_hosts", [], "")
flags.DEFINE_list("worker_hosts", [], "")
flags.DEFINE_enum("job_name", "worker", ["ps", "worker"], "")
flags.DEFINE_integer("task_index", 0, "")
FLAGS = flags.FLAGS


def main(_):
    spec = {"ps": FLAGS.ps_hosts, "worker": FLAGS.worker_hosts + ["localhost:1"]}  # the last one never starts
    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task_index])
    server = tf.train.Server(spec, FLAGS.job_name, FLAGS.task_index, config=config)
    if FLAGS.job_name == "ps":
        server.join()
        return
    with tf.device(
        tf.train.replica_device_setter(cluster=spec, worker_device="/job:worker/task:%d" % FLAGS.task_index)
    ):
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", [3], initializer=tf.ones_initializer())
        train = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(tf.square(w)), global_step=step)
    with tf.Session(server.target, config=config) as sess:
        if FLAGS.task_index == 0:
            sess.run(tf.global_variables_initializer())
        while sess.run(tf.report_uninitialized_variables()).size:
            pass
        for _ in range(10):
            sess.run(train)
        print("worker %d ended" % FLAGS.task_index)


if __name__ == "__main__":
    tf.app.run(main)
