"""k-means: the graph alone, and as an Estimator."""

import numpy as np
import pytest

import tensorfleet as tf

RANDOM = np.random.RandomState(3)
CORNERS = np.array([[0, 0], [10, 0], [0, 10]], np.float32)
POINTS = (CORNERS.repeat(20, 0) + 0.1 * RANDOM.randn(60, 2)).astype(np.float32)
MEANS = POINTS.reshape(3, 20, 2).mean(1)
KMeans = tf.contrib.factorization.KMeans


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    yield
    tf.summary.FileWriterCache.clear()


def test_who_waits_in_vain_for_the_first_centers_is_told(monkeypatch):
    from tensorfleet_legacy.estimator.canned.kmeans import _Chooses

    monkeypatch.setenv("TENSORFLEET_STEP_SECONDS", "0.2")
    config = type("Config", (), {"is_chief": False, "model_dir": ""})
    with tf.Session() as session:
        hook = _Chooses(tf.no_op(), tf.constant(False), config)
        with pytest.raises(tf.errors.DeadlineExceededError, match="the chief to choose the first centers"):
            hook.after_create_session(session, None)


def sorted_rows(rows):
    return rows[np.lexsort(np.round(rows).T)]


def trained(steps=5, points=POINTS, **options):
    """Centers, nearest centers and distances to them after some steps."""
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.set_random_seed(1)
        result = KMeans(tf.constant(points), **options).training_graph()
        _, places, nearest, chosen, choose, train = result
        sess.run(tf.global_variables_initializer())
        while not sess.run(chosen):
            sess.run(choose)
        for _ in range(steps):
            sess.run(train)
        (centers,) = [v for v in tf.global_variables() if v.op.name == "clusters"]
        return sess.run([centers, places[0], nearest[0]])


@pytest.mark.parametrize("initial", ["kmeans_plus_plus", "kmc2", CORNERS + 1])
def test_centers_become_the_means_of_their_points(initial):
    centers, places, nearest = trained(num_clusters=3, initial_clusters=initial, kmc2_chain_length=20)
    np.testing.assert_allclose(sorted_rows(centers), sorted_rows(MEANS), atol=1e-4)
    np.testing.assert_allclose(nearest, ((POINTS - centers[places]) ** 2).sum(1), atol=1e-3)


def test_a_center_of_many_batches_is_the_mean_of_all_it_had():
    centers, *_ = trained(1, num_clusters=3, initial_clusters=CORNERS, use_mini_batch=True)
    # A center counts as one point to begin with.
    np.testing.assert_allclose(centers, (CORNERS + 20 * MEANS) / 21, atol=1e-4)


def test_centers_stay_for_the_steps_of_an_iteration():
    options = dict(
        num_clusters=3, initial_clusters=CORNERS, use_mini_batch=True, mini_batch_steps_per_iteration=3
    )
    np.testing.assert_array_equal(trained(3, **options)[0], CORNERS)
    np.testing.assert_allclose(trained(4, **options)[0], MEANS, atol=1e-4)


def test_a_cosine_does_not_know_lengths():
    directions = np.array([[1, 0], [0, 1]], np.float32)
    points = np.concatenate([directions, 5 * directions])
    centers, places, nearest = trained(
        points=points, num_clusters=2, initial_clusters=directions + 0.1, distance_metric="cosine"
    )
    np.testing.assert_allclose(centers, directions, atol=1e-5)
    assert places.tolist() == [0, 1, 0, 1]
    np.testing.assert_allclose(nearest, np.zeros(4), atol=1e-5)


def test_few_points_fill_the_centers_over_several_batches():
    with tf.Graph().as_default(), tf.Session() as sess:
        batch = tf.placeholder(tf.float32, [None, 2])
        *_, chosen, choose, _ = KMeans(batch, 3).training_graph()
        sess.run(tf.global_variables_initializer())
        sess.run(choose, {batch: CORNERS[:2]})
        assert not sess.run(chosen)
        sess.run(choose, {batch: CORNERS[2:]})
        assert sess.run(chosen)


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        ({"initial_clusters": "best"}, "Unsupported initialization algorithm 'best'"),
        ({"distance_metric": "manhattan"}, "Unsupported distance metric 'manhattan'"),
    ],
)
def test_what_is_not_known_is_refused(options, phrase):
    for make in (lambda **o: KMeans(POINTS, 2, **o), lambda **o: tf.estimator.experimental.KMeans(2, **o)):
        with pytest.raises(ValueError, match=phrase):
            make(**options)


def points_fn():
    return tf.train.limit_epochs(tf.convert_to_tensor(POINTS), num_epochs=1)


def test_an_estimator_finds_the_centers(tmp_path):
    means = tf.estimator.experimental.KMeans(
        3, str(tmp_path), initial_clusters="kmeans_plus_plus", use_mini_batch=False
    )
    means.train(points_fn)  # all of the only epoch is needed to choose centers
    assert means.get_variable_value("global_step") == 0 and means.get_variable_value("initialized")
    for _ in range(3):
        means.train(points_fn)
    centers = means.cluster_centers()
    np.testing.assert_allclose(sorted_rows(centers), sorted_rows(MEANS), atol=1e-3)
    expected = np.sqrt(((POINTS[:, None] - centers) ** 2).sum(-1))
    assert means.score(points_fn) == pytest.approx((expected.min(1) ** 2).sum(), rel=1e-2)
    assert list(means.predict_cluster_index(points_fn)) == expected.argmin(1).tolist()
    np.testing.assert_allclose(list(means.transform(points_fn)), expected, atol=1e-2)


def test_training_ends_when_the_loss_no_longer_changes(tmp_path):
    clustering = tf.contrib.factorization.KMeansClustering(
        3, str(tmp_path), initial_clusters=CORNERS, relative_tolerance=0.1, use_mini_batch=False
    )
    clustering.train(lambda: tf.constant(POINTS), steps=50)
    assert clustering.get_variable_value("global_step") < 10
