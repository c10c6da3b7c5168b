"""Synchronous training under a supervisor, in which every worker counts its own steps; the second makes more than the chief."""

import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "")
flags.DEFINE_string("worker_hosts", "", "")
flags.DEFINE_string("job_name", "", "")
flags.DEFINE_integer("task_index", 0, "")
flags.DEFINE_integer("steps", 50, "how many it makes")
FLAGS = flags.FLAGS


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    is_chief = FLAGS.task_index == 0
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        step = tf.Variable(0, trainable=False, name="global_step")
        w = tf.Variable(0.0)
        opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 2, 2)
        train = opt.minimize(tf.square(w - 3), global_step=step)
        runner, tokens = opt.get_chief_queue_runner(), opt.get_init_tokens_op()
    sv = tf.train.Supervisor(is_chief=is_chief, init_op=tf.global_variables_initializer(), global_step=step)
    sess = sv.prepare_or_wait_for_session(server.target)
    if is_chief:
        sv.start_queue_runners(sess, [runner])
        sess.run(tokens)
    for _ in range(5 if is_chief else FLAGS.steps):
        sess.run(train)
    print("made all steps")


tf.app.run()
