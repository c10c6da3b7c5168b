"""A large embedding in parts over several parameter servers, others by size; trained by rows."""

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "")
flags.DEFINE_string("worker_hosts", "", "")
flags.DEFINE_string("job_name", "", "")
flags.DEFINE_integer("task_id", 0, "")
FLAGS = flags.FLAGS


def main(_):
    ps = FLAGS.ps_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": ps, "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_id)
    if FLAGS.job_name == "ps":
        return server.join()
    strategy = tf.contrib.training.GreedyLoadBalancingStrategy(len(ps), tf.contrib.training.byte_size_load_fn)
    setter = tf.train.replica_device_setter(
        cluster=cluster, worker_device="/job:worker/task:%d" % FLAGS.task_id, ps_strategy=strategy
    )
    with tf.device(setter):
        table = tf.get_variable(
            "table",
            [1000, 8],
            initializer=tf.ones_initializer(),
            partitioner=tf.fixed_size_partitioner(len(ps)),
        )
        ids = tf.placeholder(tf.int64, [None])
        loss = tf.reduce_mean(tf.square(tf.nn.embedding_lookup(table, ids, partition_strategy="div")))
        step = tf.Variable(0, trainable=False, name="global_step")
        train = tf.train.AdagradOptimizer(0.5).minimize(loss, global_step=step)
    devices = sorted({v.device for v in table})
    print("parts on %s" % ", ".join(d.partition("/job:")[2] for d in devices))
    with tf.Session(server.target) as sess:
        if FLAGS.task_id == 0:
            sess.run(tf.global_variables_initializer())
        while sess.run(tf.report_uninitialized_variables()).size:
            pass
        rng = np.random.RandomState(FLAGS.task_id)
        losses = [sess.run([train, loss], {ids: rng.randint(0, 1000, 64)})[1] for _ in range(20)]
    print("loss falls: %s" % (losses[-1] < losses[0]))


if __name__ == "__main__":
    tf.app.run()
