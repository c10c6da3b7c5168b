"""Logistic regression with ten million hashed features: the servers run FTRL on the rows of each batch.

    tensorfleet run --ps 2 --workers 2 examples/sparse_ftrl.py -- --batches 300

    worker i   the features of a batch ---> pull their weights ---> gradients ---> call("ftrl", features, gradients)
                                                                                     |
    ps 0, 1    a row (z, n, weight) for each feature that has come <-----------------+   a function of JAX, run there

Features are words hashed into ten million numbers, as for the click logs of advertisements. The table has rows for
those that occur. FTRL-proximal (McMahan et al., 2013) keeps most weights at zero; it is a server function of a few
lines. The log is drawn from a model whose weights the program does not see.
"""

from __future__ import annotations

import argparse

import jax
import jax.numpy as jnp
import numpy as np

from tensorfleet import fleet

FEATURES = 10_000_000
FIELDS = 20  # features of each row of the log
TARGET = 0.75  # area under the ROC curve; the model that drew the labels reaches 0.85
ALPHA, BETA, L1, L2 = 0.1, 1.0, 0.5, 1.0


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--batches", type=int, default=300, help="batches of all workers together (300)")
    parser.add_argument("--batch_size", type=int, default=500, help="rows of the log in each batch (500)")
    return parser.parse_args()


def ftrl(rows: jax.Array, gradient: jax.Array) -> jax.Array:
    """New rows (z, n, weight) from the gradients of the weights."""
    z, n, weight = rows[:, 0], rows[:, 1], rows[:, 2]
    more = n + gradient**2
    z += gradient - (jnp.sqrt(more) - jnp.sqrt(n)) / ALPHA * weight
    weight = (jnp.sign(z) * L1 - z) / ((BETA + jnp.sqrt(more)) / ALPHA + L2)
    return jnp.stack([z, more, jnp.where(jnp.abs(z) <= L1, 0.0, weight)], axis=1)


def log_of(number: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A batch of the log: hashed features of each row, and whether there was a click."""
    rng = np.random.default_rng(number)
    # Each field has a few frequent words and many rare ones.
    words = (rng.pareto(1.2, (size, FIELDS)) * 4).astype(np.int64) % 100_000
    features = (words * 1_000_003 + np.arange(FIELDS) * 7_919_117) * 2_654_435_761 % FEATURES
    weights = np.sin(features * 12.9898) * 1.2  # the truth
    clicks = rng.random(size) < 1 / (1 + np.exp(-weights.sum(axis=1) / 2))
    return features, clicks.astype(np.float32)


def scores_of(table: fleet.RowTable, features: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The scores of some rows of the log, their different features, and which is which."""
    keys, which = np.unique(features, return_inverse=True)
    weights = table.pull(keys)[:, 2]
    which = which.reshape(features.shape)
    return weights[which].sum(axis=1), keys, which


def area_under_curve(scores: np.ndarray, clicks: np.ndarray) -> float:
    """How often a click has a higher score than none."""
    ranks = np.argsort(np.argsort(scores)) + 1
    positive = clicks.sum()
    return float(
        (ranks[clicks > 0].sum() - positive * (positive + 1) / 2) / (positive * (len(clicks) - positive))
    )


def main() -> None:
    flags = read_flags()
    with fleet.join() as cluster:
        table = cluster.table("weights", dim=3)
        table.install("ftrl", ftrl)
        for number in cluster.shard(range(flags.batches)):
            features, clicks = log_of(number, flags.batch_size)
            scores, keys, which = scores_of(table, features)
            wrong = 1 / (1 + np.exp(-scores)) - clicks
            gradients = np.bincount(which.ravel(), np.repeat(wrong, FIELDS), len(keys)).astype(np.float32)
            table.call("ftrl", keys, gradients)
        features, clicks = log_of(-1 % 2**32, 20_000)
        quality = area_under_curve(scores_of(table, features)[0], clicks)
        print(
            f"worker {cluster.rank} is done: {table.size()} features. Area under the curve {quality:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
