"""Parameter servers that end by themselves: they wait for a token of every worker in a shared queue."""

import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "")
flags.DEFINE_string("worker_hosts", "", "")
flags.DEFINE_string("job_name", "", "")
flags.DEFINE_integer("task_index", 0, "")
FLAGS = flags.FLAGS


def create_done_queue(i, num_workers):
    with tf.device("/job:ps/task:%d" % i):
        return tf.FIFOQueue(num_workers, tf.int32, shared_name="done_queue" + str(i))


def main(_):
    ps, workers = FLAGS.ps_hosts.split(","), FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": ps, "worker": workers})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        sess = tf.Session(server.target)
        queue = create_done_queue(FLAGS.task_index, len(workers))
        for i in range(len(workers)):
            sess.run(queue.dequeue())
            print("ps %d received done %d" % (FLAGS.task_index, i))
        print("ps %d: quitting" % FLAGS.task_index)
        return
    with tf.device("/job:ps/task:0"):
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
    add = total.assign_add(1.0, use_locking=True)
    done = [create_done_queue(i, len(workers)).enqueue(1) for i in range(len(ps))]
    sess = tf.Session(server.target)
    if FLAGS.task_index == 0:
        sess.run(tf.global_variables_initializer())
    while sess.run(tf.report_uninitialized_variables()).size:
        pass
    for _ in range(5):
        sess.run(add)
    sess.run(done)
    print("worker %d is done" % FLAGS.task_index)


if __name__ == "__main__":
    tf.app.run()
