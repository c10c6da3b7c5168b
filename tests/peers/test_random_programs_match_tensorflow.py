"""Random programs with state of every kind give the values that they give on TensorFlow."""

import types

import numpy as np
import pytest

import tensorfleet as tf
from tests.support import random_graphs, random_steps

PARTS, SEEDS_OF_A_PART = 8, 10


@pytest.fixture(scope="module")
def oracle(tensorflow):
    """TensorFlow under the names that the generator uses.

    Its graph optimizer is off. It leaves out updates that the graph asks for, such as those behind a loop that runs zero
    times.
    """
    from tensorflow.python.ops import lookup_ops

    config = tensorflow.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    lookup = types.SimpleNamespace(
        MutableHashTable=lookup_ops.MutableHashTable,
        index_table_from_tensor=lookup_ops.index_table_from_tensor,
    )

    class Names:
        contrib = types.SimpleNamespace(lookup=lookup)

        def __getattr__(self, name):
            return getattr(tensorflow, name)

        def Session(self, target):
            return tensorflow.Session(target, config=config)

    return Names()


def outcome_on(library, seed, monkeypatch):
    for module in (random_graphs, random_steps):
        monkeypatch.setattr(module, "tf", library)
    return random_graphs.outcome(seed)


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_give_the_values_of_tensorflow(part, oracle, monkeypatch):
    for seed in range(part, PARTS * SEEDS_OF_A_PART, PARTS):
        expected, program = outcome_on(oracle, seed, monkeypatch)
        actual, _ = outcome_on(tf, seed, monkeypatch)
        for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
            assert np.array_equal(a, b), f"seed {seed}, value {i} of {', '.join(program.steps)}"
