"""The ops of k-means and of dual coordinate ascent: TensorFlow's values."""

import numpy as np

from tests.peers.programs import agree, refuse_alike, walk, walk_errors

POINTS = np.random.RandomState(0).randn(13, 3).astype(np.float32)
NAMES = np.array([bytes((i * 7 + j * 13) % 256 for j in range(i)) for i in range(300)], object)


def plus_plus(seed, count, retries):
    return lambda tf: tf.raw_ops.KmeansPlusPlusInitialization(
        points=POINTS,
        num_to_sample=np.int64(count),
        seed=np.int64(seed),
        num_retries_per_sample=np.int64(retries),
    )


def chain(seed):
    return lambda tf: tf.raw_ops.KMC2ChainInitialization(distances=np.abs(POINTS[:, 0]), seed=np.int64(seed))


def nearest(k):
    return lambda tf: list(tf.raw_ops.NearestNeighbors(points=POINTS, centers=POINTS[:4], k=np.int64(k)))


def ascent(loss, label, partitions=1, l1=0.0):
    """One example, whose order does not matter."""
    dual = 0.3 if label or loss == "squared_loss" else -0.3

    def program(tf):
        state, sparse, dense = tf.raw_ops.SdcaOptimizerV2(
            sparse_example_indices=[np.array([0, 0])],
            sparse_feature_indices=[np.array([5, 2])],
            sparse_feature_values=[np.array([1.0, -2.0], np.float32)],
            dense_features=[np.array([[1.0, 0.5]], np.float32)],
            example_weights=np.array([1.5], np.float32),
            example_labels=np.array([label], np.float32),
            sparse_indices=[np.array([2, 5])],
            sparse_weights=[np.array([0.5, -0.25], np.float32)],
            dense_weights=[np.array([0.1, 0.7], np.float32)],
            example_state_data=np.array([[dual, 0, 0, 0]], np.float32),
            loss_type=loss,
            l1=l1,
            l2=2.0,
            num_loss_partitions=partitions,
            num_inner_iterations=1,
            adaptive=False,
        )
        return [state, *sparse, *dense]

    return program


LOSSES = ("logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss")
VALUES = {
    **{
        f"{n} centers, seed {s}, {r} retries": plus_plus(s, n, r)
        for s in (0, 7, -3)
        for n, r in ((1, 2), (6, 0), (5, 3))
    },
    **{f"a chain from {s}": chain(s) for s in (0, 1, 12345678901)},
    **{f"{k} nearest": nearest(k) for k in (1, 2, 30)},
    **{f"{loss} of {label}": ascent(loss, label) for loss in LOSSES for label in (0.0, 1.0)},
    **{f"{loss} in three partitions": ascent(loss, 1.0, 3, 0.2) for loss in LOSSES},
    "fingerprints": lambda tf: tf.train.sdca_fprint(NAMES),
}


@walk(VALUES)
def test_values(tensorflow, program):
    agree(tensorflow, program)


ERRORS = {
    "no class": (ascent("logistic_loss", 0.5), "Only labels of 0.0 or 1.0 are supported"),
    "no count": (
        ascent("poisson_loss", -1.0),
        "Only non-negative labels can be used with the Poisson log loss",
    ),
}


@walk_errors(ERRORS)
def test_errors(tensorflow, program, phrase):
    refuse_alike(tensorflow, program, phrase)
