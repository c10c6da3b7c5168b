"""Train one network with several workers over parameter servers, on real handwritten digits, to 92 % and more.

    make run
    tensorfleet run --ps 1 --workers 2 examples/mnist_replica.py -- --train_steps 2000 --sync_replicas
    python examples/mnist_replica.py --existing_servers --ps_hosts a:2222 --worker_hosts b:2222,c:2222 \\
        --job_name worker --task_index 0                 # and another with 1: clients of servers that are running

Each worker builds the same graph (between-graph replication): variables on the parameter servers, everything else on
itself. Workers take their own steps (asynchronous), or with --sync_replicas one step is the average over
--replicas_to_aggregate of them. The flags are those of TensorFlow's example of that name, and mean the same.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time

from tensorfleet.examples.tutorials.mnist import input_data

import tensorfleet as tf

flags = tf.app.flags
flags.DEFINE_string(
    "data_dir",
    "/tmp/mnist-data",
    "where MNIST's files are; without them 10,000 digits that come along are used",
)
flags.DEFINE_boolean("download_only", False, "only read the data, then stop")
flags.DEFINE_integer("task_index", None, "which task of its job this is; task 0 of the workers is the chief")
flags.DEFINE_integer("num_gpus", 0, "GPUs of each machine; 0 trains on CPUs")
flags.DEFINE_integer(
    "replicas_to_aggregate", None, "gradients that make one synchronous step; as many as workers if not set"
)
flags.DEFINE_integer("hidden_units", 100, "width of the hidden layer")
flags.DEFINE_integer("train_steps", 2000, "global steps to train")
flags.DEFINE_integer("batch_size", 100, "images per step of a worker")
flags.DEFINE_float("learning_rate", 0.003, "of Adam")
flags.DEFINE_boolean("sync_replicas", False, "average the workers' gradients in every step")
flags.DEFINE_boolean("existing_servers", False, "use servers that are running at the given addresses")
flags.DEFINE_string(
    "ps_hosts", "localhost:2222", "addresses of the parameter servers, with commas between them"
)
flags.DEFINE_string("worker_hosts", "localhost:2223,localhost:2224", "addresses of the workers")
flags.DEFINE_string("job_name", None, "ps or worker")
flags.DEFINE_string(
    "train_dir", None, "where the chief keeps checkpoints and summaries; a new directory if not set"
)
flags.DEFINE_float("target", 0.92, "validation accuracy to reach; less is a failure")
FLAGS = flags.FLAGS

PIXELS = 28 * 28


def network(x: tf.Tensor) -> tf.Tensor:
    """Ten scores per image."""
    hidden_w = tf.Variable(tf.truncated_normal([PIXELS, FLAGS.hidden_units], stddev=1 / 28), name="hid_w")
    hidden_b = tf.Variable(tf.zeros([FLAGS.hidden_units]), name="hid_b")
    top_w = tf.Variable(
        tf.truncated_normal([FLAGS.hidden_units, 10], stddev=1 / math.sqrt(FLAGS.hidden_units)), name="sm_w"
    )
    top_b = tf.Variable(tf.zeros([10]), name="sm_b")
    hidden = tf.nn.relu(tf.nn.xw_plus_b(x, hidden_w, hidden_b))
    return tf.nn.xw_plus_b(hidden, top_w, top_b)


def worker_device(workers: int) -> str:
    if FLAGS.num_gpus > 0:
        if FLAGS.num_gpus < workers:
            raise ValueError(f"number of gpus ({FLAGS.num_gpus}) is less than number of workers ({workers})")
        return f"/job:worker/task:{FLAGS.task_index}/gpu:{FLAGS.task_index % FLAGS.num_gpus}"
    return f"/job:worker/task:{FLAGS.task_index}/cpu:0"


def evaluate(session: tf.train.MonitoredSession, accuracy: tf.Tensor, data: dict) -> float:
    """The accuracy on some data, without the hooks: it is no training step."""
    return session.run_step_fn(lambda step_context: step_context.session.run(accuracy, data))


def train(cluster: tf.train.ClusterSpec, target: str, data: input_data.DataSets) -> float:
    """Trains with the other workers until the global step is reached; returns the validation accuracy."""
    chief = FLAGS.task_index == 0
    workers = cluster.num_tasks("worker")
    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.train_steps)]
    with tf.device(tf.train.replica_device_setter(worker_device=worker_device(workers), cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [None, PIXELS])
        labels = tf.placeholder(tf.float32, [None, 10])
        scores = network(x)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=scores))
        right = tf.equal(tf.argmax(scores, 1), tf.argmax(labels, 1))
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        tf.summary.scalar("loss", loss)
        optimizer = tf.train.AdamOptimizer(FLAGS.learning_rate)
        if FLAGS.sync_replicas:
            together = FLAGS.replicas_to_aggregate or workers
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, together, total_num_replicas=workers)
            hooks.append(optimizer.make_session_run_hook(chief))
        update = optimizer.minimize(loss, global_step=step)

    validation = {x: data.validation.images, labels: data.validation.labels}
    final = tf.train.FinalOpsHook(accuracy, validation)
    hooks.append(final)
    began, said = time.time(), 0
    train_dir = FLAGS.train_dir or (tempfile.mkdtemp(prefix="mnist_replica-") if chief else None)
    config = tf.ConfigProto(
        allow_soft_placement=True, device_filters=["/job:ps", f"/job:worker/task:{FLAGS.task_index}"]
    )
    with tf.train.MonitoredTrainingSession(
        master=target, is_chief=chief, checkpoint_dir=train_dir, hooks=hooks, config=config
    ) as session:
        while not session.should_stop():
            images, classes = data.train.next_batch(FLAGS.batch_size)
            _, now, cost = session.run([update, step, loss], {x: images, labels: classes})
            if now - said >= min(200, FLAGS.train_steps // 10):
                said = now
                reached = evaluate(session, accuracy, validation)
                print(
                    f"global step {now:5d} of {FLAGS.train_steps}   loss {cost:.4f}   validation accuracy {reached:.4f}",
                    flush=True,
                )
    print(f"Worker {FLAGS.task_index} trained for {time.time() - began:.1f} s.")
    if chief:
        print(f"Checkpoints and TensorBoard's files are in {train_dir}.")
    return float(final.final_ops_values)


def main(_: list[str]) -> int:
    if FLAGS.download_only:
        input_data.read_data_sets(FLAGS.data_dir)
        return 0
    if FLAGS.job_name not in ("ps", "worker") or FLAGS.task_index is None:
        sys.exit("Say which task this is with --job_name and --task_index, or let `tensorfleet run` do it.")
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    if FLAGS.existing_servers:
        if FLAGS.job_name == "ps":
            return 0  # the parameter servers are there
        target = f"grpc://{cluster.task_address('worker', FLAGS.task_index)}"
    else:
        server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
        if FLAGS.job_name == "ps":
            server.join()
            return 0
        target = server.target
    reached = train(cluster, target, input_data.read_data_sets(FLAGS.data_dir, one_hot=True))
    if FLAGS.task_index == 0:
        print(f"Final validation accuracy {reached:.4f} (target {FLAGS.target:g}).")
        if reached < FLAGS.target:
            print("The target was missed: try more --train_steps.", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    tf.app.run()
