"""Our random numbers against TensorFlow's: three executions of each op in one session."""

from importlib import import_module

import ml_dtypes
import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.kernels import philox, philox_normal
from tensorfleet.kernels import philox_rejection as rejection
from tensorfleet.kernels import philox_sampling as sampling

SEEDS = [(123, 0), (0, 45), (87654321, 5), (-3, 2**40 + 1)]
# Ours and the C library's single-precision sine, cosine and logarithm may differ in the last bit.
ROUNDING = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 5e-7, "float64": 1e-14}
FILLS = {
    "RandomUniform": philox.random_uniform,
    "RandomStandardNormal": philox_normal.random_standard_normal,
    "TruncatedNormal": philox_normal.truncated_normal,
}
STATELESS = {
    "StatelessRandomUniform": philox.random_uniform,
    "StatelessRandomNormal": philox_normal.random_standard_normal,
    "StatelessTruncatedNormal": philox_normal.truncated_normal,
}


@pytest.fixture(scope="module")
def tensorflow():
    return import_module("tensorflow")


def theirs(tensorflow, op_type, count=3, **arguments):
    with tensorflow.Graph().as_default():
        outputs = getattr(tensorflow.raw_ops, op_type)(**arguments)
        with tensorflow.compat.v1.Session() as session:
            return [session.run(outputs) for _ in range(count)]


def ours(seeds, draw, reserved, count=3):
    state = philox.initial_state(*seeds)
    results = []
    for _ in range(count):
        results.append(draw(state))
        state = philox.skip(state, reserved)
    return results


def check(got, wanted, rtol=0.0):
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        if rtol:
            np.testing.assert_allclose(one.astype(np.float64), other.astype(np.float64), rtol=rtol)
        else:
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (13, 5), (100_003,)])
@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16, "float32", "float64"])
@pytest.mark.parametrize("op_type", FILLS)
def test_filling_ops(tensorflow, op_type, dtype, shape):
    dtype = np.dtype(dtype)
    size = int(np.prod(shape))
    for seeds in SEEDS:
        wanted = theirs(
            tensorflow, op_type, shape=np.array(shape, np.int32), dtype=dtype, seed=seeds[0], seed2=seeds[1]
        )
        draw = FILLS[op_type]
        got = ours(seeds, lambda s: draw(np, s, shape, dtype), philox.reserved(op_type, size))  # noqa: B023
        check(got, [np.asarray(w) for w in wanted], 0 if op_type == "RandomUniform" else ROUNDING[dtype.name])


def test_nearly_all_single_precision_normals_are_bit_for_bit_equal(tensorflow):
    wanted = theirs(tensorflow, "RandomStandardNormal", 1, shape=[100_000], dtype="float32", seed=1, seed2=2)[
        0
    ]
    got = philox_normal.random_standard_normal(np, philox.initial_state(1, 2), (100_000,), np.float32)
    assert (got == wanted).mean() > 0.98


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (np.int32, -5, 17),
        (np.int32, -(2**31), 2**31 - 1),
        (np.int64, -7, 2**40),
        (np.int64, -(2**63), 2**63 - 1),
    ],
)
def test_uniform_integers(tensorflow, dtype, low, high):
    for seeds in SEEDS:
        wanted = theirs(
            tensorflow,
            "RandomUniformInt",
            shape=[13, 7],
            minval=dtype(low),
            maxval=dtype(high),
            seed=seeds[0],
            seed2=seeds[1],
        )
        draw = philox.random_uniform_int
        check(ours(seeds, lambda s: draw(np, s, (13, 7), dtype, low, high), 91 * 256), wanted)  # noqa: B023


@pytest.mark.parametrize("size", [1, 2, 3, 6, 1001])
def test_shuffles(tensorflow, size):
    values = np.arange(size, dtype=np.int32)
    wanted = theirs(tensorflow, "RandomShuffle", value=values, seed=123, seed2=45)
    reserved = philox.reserved("RandomShuffle", size)
    check(ours((123, 45), lambda s: values[philox.random_shuffle(np, s, size)], reserved), wanted)


@pytest.mark.parametrize("num_samples", [1, 3, 10])
@pytest.mark.parametrize("rows", [1, 5])
def test_choices(tensorflow, rows, num_samples):
    logits = np.random.default_rng(0).normal(size=(rows, 11)).astype(np.float32) * 2
    logits[0, :3] = -np.inf, np.inf, np.nan
    wanted = theirs(tensorflow, "Multinomial", logits=logits, num_samples=num_samples, seed=123, seed2=45)
    reserved = philox.reserved("Multinomial", rows, num_samples)
    check(ours((123, 45), lambda s: philox.multinomial(np, s, logits, num_samples), reserved), wanted)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("op_type", STATELESS)
def test_stateless_ops(tensorflow, op_type, dtype):
    for seed in ([5, -9], [0, 0], [2**40, 7]):
        wanted = theirs(tensorflow, op_type, 1, shape=[101], seed=np.array(seed), dtype=dtype)
        got = STATELESS[op_type](np, philox.stateless_state(np, seed), (101,), dtype)
        check([got], wanted, 0 if op_type == "StatelessRandomUniform" else ROUNDING[dtype])


def test_stateless_integers(tensorflow):
    state = philox.stateless_state(np, [5, -9])
    wanted = theirs(
        tensorflow, "StatelessRandomUniformInt", 1, shape=[101], seed=[5, -9], minval=-4, maxval=90
    )
    check([philox.random_uniform_int(np, state, (101,), np.int32, -4, 90)], wanted)
    for dtype in ("int32", "uint32", "int64", "uint64"):
        wanted = theirs(
            tensorflow, "StatelessRandomUniformFullInt", 1, shape=[101], seed=[5, -9], dtype=dtype
        )
        check([philox.random_bits(np, state, (101,), dtype)], wanted)


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize(
    ("range_max", "num_sampled"), [(50_000, 64), (100, 90), (64, 20), (3, 3), (2_000_000, 500)]
)
@pytest.mark.parametrize("kind", ["log_uniform", "uniform", "learned_unigram", "fixed_unigram"])
def test_candidate_samplers(tensorflow, kind, range_max, num_sampled, unique):
    if kind.endswith("unigram") and range_max > 50_000:
        pytest.skip("a table of millions of weights")
    op_type = "".join(part.capitalize() for part in kind.split("_")) + "CandidateSampler"
    numbers = np.random.default_rng(1)
    true_classes = numbers.integers(0, range_max, (64, 2))
    unigrams = (numbers.random(range_max) * 10).astype(np.float32)
    memory = {
        "learned_unigram": sampling.initial_unigram_weights(range_max),
        "fixed_unigram": sampling.Unigrams(unigrams, distortion=0.75),
    }.get(kind, range_max)
    extra = {"unigrams": unigrams.tolist(), "distortion": 0.75} if kind == "fixed_unigram" else {}
    wanted = theirs(
        tensorflow,
        op_type,
        true_classes=true_classes,
        num_true=2,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
        seed=3,
        seed2=4,
        **extra,
    )
    sample = getattr(sampling, f"{kind}_candidate_sampler")
    got = ours(
        (3, 4),
        lambda state: sample(state, true_classes, num_sampled, unique, memory),
        philox.reserved(op_type, num_sampled),
    )
    for one, other in zip(got, wanted, strict=True):
        check(one[:1], other[:1])
        check(one[1:], other[1:], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gamma(tensorflow, dtype):
    alpha = np.array([[0.3, 1.0, 0.99], [1.5, 7, 200]], dtype)
    wanted = theirs(tensorflow, "RandomGamma", shape=[50, 3], alpha=alpha, seed=3, seed2=4)
    check(
        ours((3, 4), lambda s: rejection.random_gamma(np, s, (50, 3), alpha), 900 * 256),
        wanted,
        ROUNDING[dtype],
    )


@pytest.mark.parametrize(
    ("rate_type", "dtype"), [("float32", "int32"), ("float64", "float64"), ("int32", "int64")]
)
def test_poisson(tensorflow, rate_type, dtype):
    rate = np.array([[0.3, 1.0, 9.9], [10.5, 77, 2000]]).astype(rate_type)
    wanted = theirs(tensorflow, "RandomPoissonV2", shape=[50, 3], rate=rate, dtype=dtype, seed=3, seed2=4)
    check(
        ours((3, 4), lambda s: rejection.random_poisson(np, s, (50, 3), rate, np.dtype(dtype)), 900 * 256),
        wanted,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gamma_numbers_move_with_their_parameter_as_tensorflows(tensorflow, dtype):
    def run(library):
        graph = library.Graph()
        with graph.as_default(), library.Session(graph=graph) as session:
            library.set_random_seed(1)
            alpha = library.constant(np.array([[0.2, 0.9, 1.0], [1.1, 7.0, 30.0]], dtype))
            drawn = library.random_gamma([5, 2], alpha, seed=3, dtype=dtype)
            return session.run(library.gradients(library.reduce_sum(library.sqrt(drawn)), alpha)[0])

    np.testing.assert_allclose(run(tf), run(tensorflow.compat.v1), rtol=1e-8 if dtype is np.float64 else 1e-4)
