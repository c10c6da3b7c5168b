"""A replica that trains on its half of each batch, step by step with the other, and the same model on whole batches."""

import sys
import time
from pathlib import Path

import numpy as np

import tensorfleet as tf
from tensorfleet.cluster.membership import tf_config

STEPS = 4
HALF = 4


def batches():
    """For every step: inputs, and rows of a table; some rows are in one half only."""
    random = np.random.RandomState(7)
    rows = [
        [0, 1, 1, 5, 1, 2, 2, 6],
        [3, 3, 0, 1, 4, 4, 5, 0],
        [0, 0, 0, 0, 1, 2, 3, 4],
        [6, 5, 4, 3, 2, 1, 0, 6],
    ]
    return [(random.rand(2 * HALF, 3).astype("f"), np.array(r, "i")) for r in rows]


def model():
    x = tf.placeholder(tf.float32, [None, 3])
    rows = tf.placeholder(tf.int32, [None])
    w = tf.get_variable("w", [3, 2], initializer=tf.constant_initializer(0.3))
    table = tf.get_variable("table", [7, 2], initializer=tf.constant_initializer(0.1))
    guess = tf.matmul(x, w) + tf.nn.embedding_lookup(table, rows)
    return x, rows, w, table, tf.reduce_mean(tf.square(guess - 1.0))


def optimizer():
    return tf.train.AdagradOptimizer(0.2)


def whole():
    """The variables after training on whole batches in one process."""
    with tf.Graph().as_default(), tf.Session() as sess:
        x, rows, w, table, loss = model()
        train = optimizer().minimize(loss)
        sess.run(tf.global_variables_initializer())
        for inputs, indices in batches():
            sess.run(train, {x: inputs, rows: indices})
        return sess.run([w, table])


def meet(folder, me, place):
    """Waits until both replicas are here."""
    (folder / f"{place}.{me}").touch()
    while not (folder / f"{place}.{1 - me}").exists():
        time.sleep(0.01)


def replica(folder):
    config = tf_config.read()
    server = tf.train.Server(config.cluster, config.task_type, config.task_index)
    if config.task_type == "ps":
        server.join()
        return
    me = config.task_index
    device = f"/job:{config.task_type}/task:{me}"
    with tf.device(tf.train.replica_device_setter(cluster=config.cluster, worker_device=device)):
        step = tf.train.get_or_create_global_step()
        x, rows, w, table, loss = model()
        opt = tf.train.SyncReplicasOptimizer(optimizer(), 2)
        train = opt.minimize(loss, global_step=step)
    hook = opt.make_session_run_hook(config.is_chief, num_tokens=0)
    with tf.train.MonitoredTrainingSession(server.target, config.is_chief, hooks=[hook]) as sess:
        for n, (inputs, indices) in enumerate(batches()):
            mine = slice(me * HALF, (me + 1) * HALF)
            sess.run(train, {x: inputs[mine], rows: indices[mine]})
            meet(folder, me, f"step{n}")
        if config.is_chief:
            result = sess._tf_sess().run([w, table, step])
            np.savez(folder / "found.npz", w=result[0], table=result[1], step=result[2])
        meet(folder, me, "end")


if __name__ == "__main__":
    replica(Path(sys.argv[1]))
