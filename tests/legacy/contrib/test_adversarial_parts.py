"""`tf.contrib.gan`: normalization, pools of earlier data, distances and pictures."""

import numpy as np
import pytest
from scipy import linalg

import tensorfleet as tf

F, E = tf.contrib.gan.features, tf.contrib.gan.eval
RANDOM = np.random.RandomState(0)


def test_weights_are_divided_by_their_largest_singular_value(session):
    w = tf.Variable(RANDOM.normal(size=[3, 3, 4, 5]).astype(np.float32))
    norm = F.compute_spectral_norm(w, power_iteration_rounds=30)
    session.run(tf.global_variables_initializer())
    largest = np.linalg.svd(session.run(w).reshape(-1, 5))[1][0]
    np.testing.assert_allclose(session.run(norm), largest, rtol=1e-3)
    one = F.spectral_normalize(w, 30)
    penalty = F.spectral_norm_regularizer(0.5, 30)(w)
    session.run(tf.global_variables_initializer())
    np.testing.assert_allclose(np.linalg.svd(session.run(one).reshape(-1, 5))[1][0], 1, rtol=1e-3)
    np.testing.assert_allclose(
        session.run(penalty), 0.5 * np.linalg.svd(session.run(w).reshape(-1, 5))[1][0], rtol=1e-3
    )
    with pytest.raises(ValueError, match="scale cannot be an integer"):
        F.spectral_norm_regularizer(1)


def test_layers_are_normalized_under_a_getter(session):
    x = tf.eye(4)
    with tf.variable_scope(
        "net", custom_getter=F.spectral_normalization_custom_getter(power_iteration_rounds=20)
    ):
        y = tf.layers.dense(x, 6, name="layer")
    session.run(tf.global_variables_initializer())
    np.testing.assert_allclose(np.linalg.svd(session.run(y))[1][0], 1, rtol=2e-2)
    assert [v.op.name for v in tf.trainable_variables()] == ["net/layer/kernel", "net/layer/bias"]


def test_an_example_is_normalized_with_a_reference_batch(session):
    reference = RANDOM.normal(2, 3, [7, 4]).astype(np.float32)
    x = RANDOM.normal(size=[2, 4]).astype(np.float32)
    layer = F.VBN(tf.constant(reference))
    result, own = layer(tf.constant(x)), layer.reference_batch_normalization()
    session.run(tf.global_variables_initializer())
    got, by_itself = session.run([result, own])
    np.testing.assert_allclose(
        by_itself, (reference - reference.mean(0)) / np.sqrt(reference.var(0) + 1e-3), rtol=1e-4, atol=1e-5
    )
    for row, item in zip(x, got, strict=True):
        both = np.concatenate([reference, row[None]])
        np.testing.assert_allclose(
            item, (row - both.mean(0)) / np.sqrt(both.var(0) + 1e-3), rtol=1e-3, atol=1e-4
        )
    assert {v.op.name for v in tf.trainable_variables()} == {"VBN/beta", "VBN/gamma"}
    with pytest.raises(ValueError, match="cannot be the same"):
        F.VBN(tf.constant(reference), axis=0)


def test_conditions_are_added(session):
    result = F.condition_tensor(tf.zeros([3, 2, 2]), tf.ones([3, 5]))
    by_class = F.condition_tensor_from_onehot(tf.zeros([3, 4]), tf.one_hot([0, 1, 0], 2), 8)
    session.run(tf.global_variables_initializer())
    value, classes = session.run([result, by_class])
    assert value.shape == (3, 2, 2) and np.ptp(value, 0).max() < 1e-6
    np.testing.assert_allclose(classes[0], classes[2])
    assert np.abs(classes[0] - classes[1]).max() > 1e-3


def test_a_pool_gives_earlier_values(session):
    x = tf.placeholder(tf.float32, [1])
    pooled = F.tensor_pool((x, x * 2), pool_size=3, pooling_probability=1.0)
    seen = []
    for i in range(8):
        first, second = session.run(pooled, {x: [i]})
        assert second == 2 * first
        seen.append(int(first[0]))
    assert seen[:3] == [0, 1, 2] and all(s < i for i, s in enumerate(seen[3:], 3))
    assert len(set(seen)) == 8 - len(seen) + len(set(seen))
    assert F.tensor_pool(x, 0) is x


def test_weights_are_clipped(session):
    x = tf.Variable([3.0, -4.0, 0.5])
    train = F.clip_variables(tf.train.GradientDescentOptimizer(0.0), [x], 1.0).minimize(tf.reduce_sum(x))
    session.run(tf.global_variables_initializer())
    session.run(train)
    np.testing.assert_allclose(session.run(x), [1.0, -1.0, 0.5], rtol=1e-5)


REAL = RANDOM.normal(size=[40, 3])
MADE = RANDOM.normal(0.5, 2, [50, 3])


def test_frechets_distance_of_activations(session):
    wanted = np.square(REAL.mean(0) - MADE.mean(0)).sum() + np.trace(
        np.cov(REAL.T) + np.cov(MADE.T) - 2 * linalg.sqrtm(np.cov(REAL.T) @ np.cov(MADE.T)).real
    )
    result = session.run(E.frechet_classifier_distance_from_activations(REAL, MADE))
    np.testing.assert_allclose(result, wanted, rtol=1e-6)
    means = session.run(E.mean_only_frechet_classifier_distance_from_activations(REAL, MADE))
    np.testing.assert_allclose(means, np.square(REAL.mean(0) - MADE.mean(0)).sum())
    diagonal = session.run(E.diagonal_only_frechet_classifier_distance_from_activations(REAL, MADE))
    np.testing.assert_allclose(diagonal, means + np.square(REAL.std(0) - MADE.std(0)).sum())
    by_images = E.frechet_classifier_distance(
        tf.constant(REAL), tf.constant(MADE[:40]), lambda x: tf.identity(x), num_batches=4
    )
    assert session.run(by_images) > 0


def test_the_score_is_high_for_sure_and_varied_data(session):
    sure = 20 * np.eye(4)[[0, 1, 2, 3]].astype(np.float32)
    np.testing.assert_allclose(session.run(E.classifier_score_from_logits(sure)), 4, rtol=1e-3)
    np.testing.assert_allclose(session.run(E.classifier_score_from_logits(sure[[0, 0]])), 1, rtol=1e-3)


def test_the_kernel_distance_over_blocks(session):
    def kernel(a, b):
        return (a @ b.T / 3 + 1) ** 3

    def distance(r, g):
        within = [(kernel(x, x).sum() - np.trace(kernel(x, x))) / (len(x) * (len(x) - 1)) for x in (r, g)]
        return sum(within) - 2 * kernel(r, g).mean()

    blocks = [
        distance(REAL[a:b], MADE[c:d]) for a, b, c, d in ((0, 13, 0, 16), (13, 26, 16, 33), (26, 40, 33, 50))
    ]
    mean, error = session.run(
        E.kernel_classifier_distance_and_std_from_activations(tf.constant(REAL), tf.constant(MADE), 20)
    )
    np.testing.assert_allclose(
        [mean, error], [np.mean(blocks), np.std(blocks, ddof=1) / np.sqrt(3)], rtol=1e-6
    )


def test_images_side_by_side(session):
    images = np.arange(4 * 2 * 3).reshape(4, 2, 3, 1).astype(np.float32)
    grid = session.run(E.image_grid(images, (2, 2), (2, 3), 1))
    wanted = np.block([[images[0, :, :, 0], images[1, :, :, 0]], [images[2, :, :, 0], images[3, :, :, 0]]])
    np.testing.assert_array_equal(grid[0, :, :, 0], wanted)
    three = session.run(E.image_reshaper([tf.constant(i) for i in images[:3]], 2))
    np.testing.assert_array_equal(three[0, 2:, 3:], 0)
    np.testing.assert_array_equal(three[0, :2], grid[0, :2])
    with pytest.raises(ValueError, match="incompatible with minibatch size"):
        E.image_grid(images, (3, 2))


def test_models_are_summarized(session):
    model = tf.contrib.gan.gan_model(
        lambda x: tf.layers.conv2d(x, 3, 1),
        lambda x, _: tf.reduce_mean(x),
        tf.zeros([4, 5, 5, 3]),
        tf.zeros([4, 5, 5, 3]),
    )
    E.add_gan_model_image_summaries(model, grid_size=2)
    E.add_image_comparison_summaries(model, display_diffs=True)
    E.add_regularization_loss_summaries(model)
    session.run(tf.global_variables_initializer())
    summary = tf.Summary.FromString(session.run(tf.summary.merge_all()))
    assert {"real_data/image", "generated_data/image", "image_comparison/image"} <= {
        v.tag for v in summary.value
    }


def test_images_are_prepared_for_a_classifier(session):
    result = session.run(E.preprocess_image(np.full([10, 10, 3], 255, np.uint8), 4, 4))
    np.testing.assert_allclose(result, np.full([4, 4, 3], 127 / 128))


def test_a_pool_takes_values_of_any_size(session):
    x = tf.placeholder(tf.float32)
    pooled = F.tensor_pool(x, pool_size=2)
    for i in range(6):
        assert session.run(pooled, {x: np.ones([i + 1, 3])}).shape[1] == 3
