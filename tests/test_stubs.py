"""What editors and type checkers know of the `tf.` names: tensorfleet-stubs, which tools/make_stubs.py writes."""

import subprocess
import sys
from pathlib import Path

import tensorfleet

ROOT = Path(tensorfleet.__file__).parent.parent
STUBS = ROOT / "tensorfleet-stubs"
# A training script as TensorFlow 1 programs are.
SCRIPT = """
import numpy as np

import tensorfleet as tf

flags = tf.app.flags
flags.DEFINE_float("learning_rate", 0.01, "how far a step goes")
FLAGS = flags.FLAGS


def model(images: tf.Tensor, training: tf.Tensor) -> tf.Tensor:
    with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
        x = tf.layers.conv2d(images, 32, 3, padding="same", activation=tf.nn.relu)
        x = tf.layers.max_pooling2d(x, 2, 2)
        x = tf.layers.dropout(tf.layers.flatten(x), 0.4, training=training)
        w = tf.get_variable("w", [100, 10], tf.float32, initializer=tf.truncated_normal_initializer(stddev=0.1))
        b = tf.Variable(tf.zeros([10]), name="b")
        return tf.nn.bias_add(tf.matmul(x, w), b) * 2.0 + b[0]


def main(_: list[str]) -> None:
    cluster = tf.train.ClusterSpec({"ps": ["localhost:2222"], "worker": ["localhost:2223"]})
    server = tf.train.Server(cluster, job_name="worker", task_index=0)
    dataset = tf.data.Dataset.from_tensor_slices((np.zeros((8, 28, 28, 1), np.float32), np.zeros(8, np.int64)))
    dataset = dataset.map(lambda x, y: (x / 255.0, y)).shuffle(100).repeat().batch(4).prefetch(1)
    iterator = dataset.make_one_shot_iterator()
    images, labels = iterator.get_next()
    training = tf.placeholder(tf.bool, [], name="training")
    x = tf.placeholder(tf.float32, shape=(None, 784))
    with tf.device(tf.train.replica_device_setter(cluster=cluster)), tf.name_scope("net"):
        logits = model(images, training)
        loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
        loss += tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=x, logits=x))
        step = tf.train.get_or_create_global_step()
        rate = tf.train.exponential_decay(0.1, step, 1000, 0.96, staircase=True)
        optimizer = tf.train.AdamOptimizer(rate)
        grads = optimizer.compute_gradients(loss)
        train = optimizer.apply_gradients([(tf.clip_by_norm(g, 1.0), v) for g, v in grads], global_step=step)
        also = tf.train.GradientDescentOptimizer(FLAGS.learning_rate).minimize(loss, global_step=step)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
    value, update = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
    tf.summary.scalar("loss", loss)
    tf.summary.histogram("logits", logits)
    merged = tf.summary.merge_all()
    saver = tf.train.Saver(tf.global_variables(), max_to_keep=3)
    config = tf.ConfigProto(allow_soft_placement=True, log_device_placement=False)
    config.gpu_options.allow_growth = True
    with tf.control_dependencies([train]), tf.Session(config=config) as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        writer = tf.summary.FileWriter("log", sess.graph)
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        for i in range(10):
            _, found, text = sess.run([train, loss, merged], feed_dict={training: True, x: np.zeros((1, 784))})
            writer.add_summary(text, i)
            print(f"{i}: {found:.3f}", accuracy.eval({training: False}))
        coord.request_stop()
        coord.join(threads)
        saver.save(sess, "model", global_step=step)
        saver.restore(sess, tf.train.latest_checkpoint("."))
    hooks = [tf.train.StopAtStepHook(last_step=100), tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=10)]
    with tf.train.MonitoredTrainingSession(
        master=server.target, is_chief=True, checkpoint_dir="model", hooks=hooks
    ) as mon:
        try:
            while not mon.should_stop():
                mon.run(also, {training: True})
        except tf.errors.OutOfRangeError as error:
            tf.logging.info("the end: %s", error.message)
    cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(10) for _ in range(2)])
    outputs, state = tf.nn.dynamic_rnn(cell, images, dtype=tf.float32)
    y = tf.while_loop(lambda i: i < 10, lambda i: i + 1, [tf.constant(0)])
    z = tf.cond(training, lambda: tf.ones([2]), lambda: -tf.ones([2]))
    dense = tf.keras.layers.Dense(10, activation="relu", input_shape=(3,))(x)
    net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    net.compile(optimizer="sgd", loss="mse")
    v1 = tf.compat.v1.Session()
    slim = tf.contrib.slim
    h = slim.fully_connected(x, 10)
    q = tf.FIFOQueue(10, [tf.float32], shapes=[[]])
    q.enqueue([1.0])
    print(v1, h, q.dequeue(), y, z, dense, outputs, state, value, update, dataset.output_types, x.get_shape().as_list())


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run(main)
"""
MISTAKES = """
import tensorfleet as tf

tf.train.AdamOptimzer(0.1)
tf.placehoder(tf.float32)
tf.keras.layers.Dens(1)
tf.nn.relu(1.0, nme="y")
tf.train.AdamOptimizer(learning_rat=0.1)
"""
PLACES = """
    train nn layers losses metrics summary data image math linalg strings io random sets sparse saved_model distribute
    errors logging gfile app initializers lookup fleet keras estimator feature_column contrib
"""


def mypy(folder: Path, *paths: Path) -> list[str]:
    """What mypy says of the files, a line per error."""
    options = [
        "--config-file=",
        f"--cache-dir={folder / 'cache'}",
        "--no-error-summary",
        "--hide-error-context",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *map(str, paths)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert not done.stderr, done.stderr
    return [line for line in done.stdout.splitlines() if ": note: " not in line]


def test_stubs_are_what_the_code_publishes():
    tool = [sys.executable, str(ROOT / "tools" / "make_stubs.py"), "--check"]
    done = subprocess.run(tool, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_type_checker_accepts_a_training_script_and_finds_misspelled_names(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    said = mypy(tmp_path, tmp_path / "script.py", tmp_path / "mistakes.py", STUBS)
    assert [line.partition(": error: ")[0] for line in said] == [f"mistakes.py:{n}" for n in range(4, 9)], (
        said
    )
    assert 'no attribute "AdamOptimzer"; maybe "AdamOptimizer"?' in said[0]


def test_every_namespace_of_the_core_completes():
    top = (STUBS / "__init__.pyi").read_text().splitlines()
    assert [
        place for place in PLACES.split() if f"from tensorfleet import {place} as {place}" not in top
    ] == []


def test_both_packages_say_that_they_are_typed():
    assert (ROOT / "tensorfleet" / "py.typed").exists()
    assert (ROOT / "tensorfleet_legacy" / "py.typed").exists()
    assert (STUBS / "py.typed").read_text() == "partial\n"
