"""The works do the same arithmetic in every library: from the same weights, the same losses."""

import functools

import numpy as np
import pytest

import tensorfleet

STEPS = 5
# What is left out of a work here, since each library draws its own numbers: dropout and sampled classes.
WORKS = (
    "mlp100",
    "mlp100adam",
    "mlp1024",
    "mlp1024adam",
    "cnn",
    "embed",
    "lstm",
    "lstm_fused",
    "lstm_block",
    "resnet",
    "transformer",
    "wide_deep_ids",
    "sentences",
)


def shapes_of(batches, name, size):
    of = {
        "mlp100": lambda: batches.mlp_shapes(batches.scaled(100, size)),
        "mlp1024": lambda: batches.mlp_shapes(batches.scaled(1024, size)),
        "cnn": lambda: batches.cnn_shapes(
            (batches.scaled(32, size), batches.scaled(64, size)), batches.scaled(512, size)
        ),
        "embed": lambda: batches.embedding_shapes(batches.Embedding.of(50_000, size)),
        "lstm": lambda: batches.lstm_shapes(batches.scaled(128, size)),
        "resnet": lambda: batches.resnet_shapes(batches.scaled(16, size)),
        "transformer": lambda: batches.transformer_shapes(batches.Transformer.of(size)),
        "wide_deep_ids": lambda: batches.wide_deep_shapes(batches.WideDeep.of(size)),
        "sentences": lambda: batches.sentences_shapes(batches.Sentences.of(size)),
    }
    return of[name.removesuffix("adam").removesuffix("_fused").removesuffix("_block")]()


def without_chance(batches, name, size):
    """The arguments that take dropout out of a work, or give it the classes that it would sample."""
    if name == "transformer":
        config = batches.Transformer.of(size)
        return {"config": batches.Transformer(config.width, dropout=0.0)}
    if name == "embed":
        return {"sampled": batches.Candidates(batches.Embedding.of(50_000, size)).draw()}
    return {}


def tolerance(library, name, step):
    """How far the losses of a step may be apart. A step that learns another thing is further away."""
    if name == "resnet":
        # It is chaotic: weights that differ by 1e-7 of their size move the second loss by 2e-4, the fourth by 2e-2. The
        # fifth of TensorFlow and of JAX differ by 3 %, on some processors.
        return (1e-5, 1e-3, 1e-2, 5e-2, 0.15)[step]
    if library == "torch" and name.endswith("adam"):
        return 1e-3  # PyTorch adds Adam's epsilon after it has corrected the mean square, TensorFlow before
    return 2e-4


def losses_of_graph(script, tf, name, size, weights):
    """The losses of a work on TensorFlow or TensorFleet."""
    batches, models, works = script("batches"), script("models"), script("works")
    extra = without_chance(batches, name, size)
    with tf.Graph().as_default():
        if name == "embed":
            drawn, tries = extra["sampled"]
            config = batches.Embedding.of(50_000, size)
            labels = batches.pairs_of_words(config)[1]
            expected = batches.Candidates(config).log_expected
            given = (drawn, np.exp(expected(labels, tries)), np.exp(expected(drawn, tries)))
            step = models.embedding(tf, size, 50_000, tuple(map(tf.constant, given)))
        elif name == "transformer":
            step = models.transformer(tf, size, **extra)
        else:
            step = works.WORKS[name].build(tf, size)
        variables = {v.op.name: v for v in tf.trainable_variables()}
        assert set(variables) == set(weights)
        for key, variable in variables.items():
            initializer = variable.initializer
            step.session.run(initializer, {initializer.inputs[1]: weights[key]})
        with step.session:
            return [float(step()) for _ in range(STEPS)]


def losses_of_peer(script, library, name, size, weights):
    """The losses of a work on PyTorch or JAX."""
    build = script(f"peers_{library}").WORKS[name]
    step = functools.partial(build, size, given=weights, **without_chance(script("batches"), name, size))()
    return [step() for _ in range(STEPS)]


@pytest.mark.peers
@pytest.mark.parametrize("size", [0.5, 1.0])
@pytest.mark.parametrize("name", WORKS)
@pytest.mark.parametrize("library", ["tensorflow", "torch", "jax"])
@pytest.mark.filterwarnings("ignore")
def test_losses_of_five_steps_are_those_of_the_other_library(script, library, name, size):
    other = pytest.importorskip("tensorflow.compat.v1" if library == "tensorflow" else library)
    weights = script("batches").weights(shapes_of(script("batches"), name, size))
    ours = losses_of_graph(script, tensorfleet, name, size, weights)
    if library == "tensorflow":
        theirs = losses_of_graph(script, other, name, size, weights)
    else:
        theirs = losses_of_peer(script, library, name, size, weights)
    assert len(set(ours)) == STEPS
    for step, (their, our) in enumerate(zip(theirs, ours, strict=True)):
        assert their == pytest.approx(our, rel=tolerance(library, name, step))
