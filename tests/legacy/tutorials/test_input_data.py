"""MNIST as the tutorials' scripts read it."""

import gzip
import struct

import numpy as np
import pytest

import tensorfleet as tf

input_data = tf.examples.tutorials.mnist.input_data
mnist = tf.examples.tutorials.mnist.mnist


@pytest.fixture(scope="module")
def bundled():
    return input_data.read_data_sets("no/such/directory", one_hot=True, seed=1)


def write_idx(path, array, zipped):
    data = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    data += array.astype(np.uint8).tobytes()
    (path.with_name(path.name + ".gz") if zipped else path).write_bytes(
        gzip.compress(data) if zipped else data
    )


def write_set(directory, zipped, n=30):
    pixels = np.arange(n * 4).reshape(n, 2, 2) % 256
    for part, count in (("train", n), ("t10k", n // 3)):
        write_idx(directory / f"{part}-images-idx3-ubyte", pixels[:count], zipped)
        write_idx(directory / f"{part}-labels-idx1-ubyte", np.arange(count) % 10, zipped)


def test_the_bundled_digits_are_real(bundled):
    assert (bundled.train.num_examples, bundled.validation.num_examples) == (7792, 708)
    assert bundled.test.num_examples == 1500
    assert bundled.train.images.shape == (7792, 784)
    assert bundled.train.images.dtype == np.float32
    assert bundled.train.images.min() == 0.0 and bundled.train.images.max() == 1.0
    assert bundled.train.labels.shape == (7792, 10)
    assert (bundled.test.labels.sum(0) > 100).all()  # every digit is there


@pytest.mark.parametrize("zipped", [True, False])
def test_files_of_a_directory_are_read(tmp_path, zipped):
    write_set(tmp_path, zipped)
    result = tf.contrib.learn.datasets.mnist.read_data_sets(
        str(tmp_path), dtype=tf.uint8, reshape=False, validation_size=5
    )
    assert result.train.images.shape == (25, 2, 2, 1)
    assert result.train.images.dtype == np.uint8
    assert result.validation.labels.tolist() == [0, 1, 2, 3, 4]
    assert result.test.num_examples == 10


def test_an_impossible_validation_size_is_refused(tmp_path):
    write_set(tmp_path, True)
    with pytest.raises(ValueError, match="Validation size should be between 0 and 30. Received: 5000"):
        input_data.read_data_sets(str(tmp_path))


def test_a_damaged_file_is_named(tmp_path):
    write_set(tmp_path, False)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(b"not digits")
    with pytest.raises(ValueError, match="Invalid magic number .*train-labels"):
        input_data.read_data_sets(str(tmp_path), validation_size=0)


def test_batches_go_through_the_set_and_start_again():
    data = input_data.DataSet(np.arange(10).reshape(10, 1, 1, 1), np.arange(10), dtype=tf.uint8, seed=3)
    seen = [data.next_batch(4)[1] for _ in range(2)]
    assert data.epochs_completed == 0
    images, labels = data.next_batch(4)
    assert data.epochs_completed == 1
    assert sorted(np.concatenate([*seen, labels[:2]])) == list(range(10))
    assert (images[:, 0] == labels).all()


def test_batches_come_in_order_when_not_shuffled():
    data = input_data.DataSet(np.zeros([6, 1, 1, 1]), np.arange(6))
    assert data.next_batch(4, shuffle=False)[1].tolist() == [0, 1, 2, 3]
    assert data.next_batch(4, shuffle=False)[1].tolist() == [4, 5, 0, 1]


def test_the_same_seed_gives_the_same_order():
    orders = [input_data.DataSet(np.zeros([9, 1, 1, 1]), np.arange(9), seed=5).next_batch(9)[1] for _ in "ab"]
    assert orders[0].tolist() == orders[1].tolist()


def test_fake_data_needs_no_files():
    fake = input_data.read_data_sets("", fake_data=True, one_hot=True)
    images, labels = fake.train.next_batch(3, fake_data=True)
    assert fake.train.num_examples == 10000
    assert np.shape(images) == (3, 784) and labels[0] == [1] + [0] * 9


def test_other_types_of_images_are_refused():
    with pytest.raises(TypeError, match="Invalid image dtype .* expected uint8 or float32"):
        input_data.DataSet(np.zeros([1, 1, 1, 1]), [0], dtype=tf.int32)


def test_keras_names_the_same_digits():
    (x, y), (x_test, y_test) = tf.keras.datasets.mnist.load_data()
    assert x.shape == (8500, 28, 28) and y.dtype == np.uint8
    assert x_test.shape == (1500, 28, 28) and len(y_test) == 1500


def test_csv_files_are_read_with_and_without_a_header(tmp_path):
    base = tf.contrib.learn.datasets.base
    path = tmp_path / "iris.csv"
    path.write_text("2,3,setosa,versicolor\n1.5,2,3,0\n4,5,6.5,1\n")
    result = base.load_csv_with_header(str(path), np.int32, np.float32)
    assert result.data.tolist() == [[1.5, 2, 3], [4, 5, 6.5]] and result.target.tolist() == [0, 1]
    path.write_text("7,1.5\n8,2.5\n")
    result = base.load_csv_without_header(str(path), np.int32, np.float32, target_column=0)
    assert result.data.tolist() == [[1.5], [2.5]] and result.target.tolist() == [7, 8]


def test_the_tutorials_network_learns(bundled):
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        images = tf.placeholder(tf.float32, [None, mnist.IMAGE_PIXELS])
        labels = tf.placeholder(tf.int32, [None])
        logits = mnist.inference(images, 32, 16)
        loss = mnist.loss(logits, labels)
        train = mnist.training(loss, 0.3)
        right = mnist.evaluation(logits, labels)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(150):
                x, y = bundled.train.next_batch(100)
                sess.run(train, {images: x, labels: y.argmax(1)})
            test = bundled.test
            assert sess.run(right, {images: test.images, labels: test.labels.argmax(1)}) > 1150
            names = [v.op.name for v in tf.trainable_variables()]
    assert names[:2] == ["hidden1/weights", "hidden1/biases"]
    assert names[-1] == "softmax_linear/biases"


def test_a_dataset_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = tf.contrib.learn.datasets.load_dataset("mnist")
    assert result.train.images.shape[1] == 784
    with pytest.raises(ValueError, match="Name of dataset is not found: boston"):
        tf.contrib.learn.datasets.load_dataset("boston")
