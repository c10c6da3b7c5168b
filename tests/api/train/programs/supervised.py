"""A softmax on made-up digits, trained by several workers under a Supervisor; started once per task:

python supervised.py --ps_hosts=h:1 --worker_hosts=h:2,h:3 --job_name=worker --task_index=0 --sync_replicas=true
"""

import time

import numpy as np

import tensorfleet as tf

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "Addresses of the parameter servers.")
flags.DEFINE_string("worker_hosts", "", "Addresses of the workers.")
flags.DEFINE_string("job_name", "", "ps or worker.")
flags.DEFINE_integer("task_index", 0, "Which one of the job.")
flags.DEFINE_boolean("sync_replicas", False, "Whether workers train together.")
flags.DEFINE_integer("train_steps", 60, "Where the global step ends.")
flags.DEFINE_string("logdir", "", "For checkpoints, if any.")
FLAGS = flags.FLAGS


def batch(random):
    labels = random.randint(0, 3, 32)
    images = random.rand(32, 12).astype("f") * 0.5
    images[np.arange(32), labels * 4] += 1.0
    return images, labels


def build(num_workers):
    step = tf.Variable(0, name="global_step", trainable=False)
    images = tf.placeholder(tf.float32, [None, 12])
    labels = tf.placeholder(tf.int64, [None])
    hidden = tf.layers.dense(images, 16, tf.nn.relu)
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.layers.dense(hidden, 3))
    )
    opt = tf.train.AdamOptimizer(0.02)
    if FLAGS.sync_replicas:
        opt = tf.train.SyncReplicasOptimizer(
            opt, replicas_to_aggregate=num_workers, total_num_replicas=num_workers, name="together"
        )
    return step, images, labels, loss, opt, opt.minimize(loss, global_step=step)


def main(_):
    ps, workers = FLAGS.ps_hosts.split(","), FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": ps, "worker": workers})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
        return
    is_chief = FLAGS.task_index == 0
    with tf.device(
        tf.train.replica_device_setter(
            worker_device=f"/job:worker/task:{FLAGS.task_index}", ps_device="/job:ps/cpu:0", cluster=cluster
        )
    ):
        step, images, labels, loss, opt, train = build(len(workers))
        extra = {}
        if FLAGS.sync_replicas:
            extra["local_init_op"] = opt.chief_init_op if is_chief else opt.local_step_init_op
            extra["ready_for_local_init_op"] = opt.ready_for_local_init_op
            runner, tokens = opt.get_chief_queue_runner(), opt.get_init_tokens_op()
        init = tf.global_variables_initializer()
    sv = tf.train.Supervisor(
        is_chief=is_chief,
        logdir=FLAGS.logdir or None,
        init_op=init,
        recovery_wait_secs=1,
        global_step=step,
        **extra,
    )
    config = tf.ConfigProto(
        allow_soft_placement=True, device_filters=["/job:ps", f"/job:worker/task:{FLAGS.task_index}"]
    )
    sess = sv.prepare_or_wait_for_session(server.target, config=config)
    if FLAGS.sync_replicas and is_chief:
        sess.run(tokens)
        sv.start_queue_runners(sess, [runner])
    random = np.random.RandomState(FLAGS.task_index)
    began, mine, reached = time.time(), 0, 0
    while reached < FLAGS.train_steps:
        x, y = batch(random)
        _, value, reached = sess.run([train, loss, step], {images: x, labels: y})
        mine += 1
    print(
        f"worker {FLAGS.task_index}: {mine} of {reached} steps, loss {value:.3f}, {time.time() - began:.1f} s"
    )


if __name__ == "__main__":
    tf.app.run()
