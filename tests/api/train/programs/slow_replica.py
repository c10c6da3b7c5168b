"""A replica of synchronous training. The slow one computes its first gradient when a file is there: the other has ended.

Not its second: it could hold a token of the current step then, without which the other cannot fill the step alone.
"""

import os
import sys
import time

import numpy as np

import tensorfleet as tf
from tensorfleet.cluster.membership import tf_config

LAST_STEP = 8


def wait_for(path):
    """A function for the slow replica's loss."""

    def computed(x):
        while not os.path.exists(path):
            time.sleep(0.01)
        return x

    return computed


def monitored(target, is_chief, opt, step, train):
    hooks = [opt.make_session_run_hook(is_chief), tf.train.StopAtStepHook(last_step=LAST_STEP)]
    with tf.train.MonitoredTrainingSession(target, is_chief, hooks=hooks) as sess:
        while not sess.should_stop():
            sess.run(train)


def supervised(target, is_chief, opt, step, train, stops=True):
    runner, tokens = opt.get_chief_queue_runner(), opt.get_init_tokens_op()
    sv = tf.train.Supervisor(
        is_chief=is_chief,
        init_op=tf.global_variables_initializer(),
        local_init_op=opt.chief_init_op if is_chief else opt.local_step_init_op,
        ready_for_local_init_op=opt.ready_for_local_init_op,
        global_step=step,
    )
    sess = sv.prepare_or_wait_for_session(target)
    if is_chief:
        sv.start_queue_runners(sess, [runner])
        sess.run(tokens)
    reached = 0
    while reached < LAST_STEP:
        _, reached = sess.run([train, step])
    if stops:
        sv.stop()


def unstopped(*args):
    supervised(*args, stops=False)


def main(style, slow, path):
    config = tf_config.read()
    server = tf.train.Server(config.cluster, config.task_type, config.task_index)
    if config.task_type == "ps":
        server.join()
        return
    device = f"/job:worker/task:{config.task_index}"
    with tf.device(tf.train.replica_device_setter(cluster=config.cluster, worker_device=device)):
        step = tf.train.get_or_create_global_step()
        loss = tf.reduce_sum(tf.square(tf.get_variable("w", [2]) - 1.0))
        if config.task_index == slow:
            loss *= tf.py_func(wait_for(path), [np.float32(1)], tf.float32)
        opt = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(0.1), 2, config.cluster.num_tasks("worker")
        )
        train = opt.minimize(loss, global_step=step)
    globals()[style](server.target, config.is_chief, opt, step, train)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
