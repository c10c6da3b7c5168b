"""The Philox streams and the distributions drawn from them, in both lives.

Expected numbers are TensorFlow 2.21's, on a CPU, for seed=87654321 and seed2=5: two executions each.
"""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from tensorfleet.kernels import philox, philox_normal

pytestmark = pytest.mark.slow  # left out by `make quick`

SEEDS = (87654321, 5)
FLOATS = ("float16", ml_dtypes.bfloat16, "float32", "float64")
FILLS = {
    "RandomUniform": philox.random_uniform,
    "RandomStandardNormal": philox_normal.random_standard_normal,
    "TruncatedNormal": philox_normal.truncated_normal,
}


@pytest.fixture(autouse=True)
def wide_types():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def executions(op_type, draw, size, *, count=2, **extra):
    state = philox.initial_state(*SEEDS)
    results = []
    for _ in range(count):
        results.append(draw(state))
        state = philox.skip(state, philox.reserved(op_type, size, **extra))
    return results


def traced(draw, state):
    return np.asarray(jax.jit(draw)(state))


# --- streams ---------------------------------------------------------------------------------------


def test_seed_becomes_the_key_and_seed2_the_upper_counter():
    state = philox.initial_state(0x1_00000002, 0x3_00000004)
    assert state.tolist() == [0, 0, 4, 3, 2, 1]
    assert philox.initial_state(-1, 0).tolist() == [0, 0, 0, 0, 2**32 - 1, 2**32 - 1]


def test_two_zero_seeds_give_an_unpredictable_stream():
    assert philox.initial_state(0, 0).tolist() != philox.initial_state(0, 0).tolist()


def test_skip_carries_through_all_words_and_wraps():
    state = np.array([2**32 - 1, 2**32 - 1, 2**32 - 1, 7, 8, 9], np.uint32)
    assert philox.skip(state, 1).tolist() == [0, 0, 0, 8, 8, 9]
    assert philox.skip(state, 2**32 + 3).tolist() == [2, 1, 0, 8, 8, 9]
    assert philox.skip(np.full(6, 2**32 - 1, np.uint32), 1).tolist() == [0, 0, 0, 0, 2**32 - 1, 2**32 - 1]


def test_skip_agrees_with_offsets_even_across_a_carry():
    for low in (0, 2**32 - 2, 2**64 - 2):
        state = philox.skip(philox.initial_state(*SEEDS), low)
        offsets = np.arange(5, dtype=np.uint64)
        together = philox.blocks(np, state, offsets)
        alone = [philox.blocks(np, philox.skip(state, i), offsets[:1])[0] for i in range(5)]
        np.testing.assert_array_equal(together, alone)
        np.testing.assert_array_equal(together, philox.blocks(jnp, jnp.asarray(state), jnp.asarray(offsets)))


def test_blocks_are_those_of_the_published_generator():
    # The vectors of Random123's known-answer file for philox4x32-10.
    zero, ones = np.zeros(6, np.uint32), np.full(6, 2**32 - 1, np.uint32)
    pi = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0]
    first = np.zeros(1, np.uint64)
    hexes = [
        [f"{word:08x}" for word in philox.blocks(np, np.array(state, np.uint32), first)[0]]
        for state in (zero, ones, pi)
    ]
    assert hexes == [
        ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"],
        ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"],
        ["d16cfe09", "94fdcceb", "5001e420", "24126ea1"],
    ]


def test_reservations_are_those_of_the_kernels():
    assert philox.reserved("RandomUniform", 10) == 2560
    assert philox.reserved("RandomShuffle", 1) == 0
    assert philox.reserved("RandomShuffle", 6) == 2
    assert philox.reserved("Multinomial", 3, num_samples=5) == 3 * 8 * 2 * 256
    assert philox.reserved("LogUniformCandidateSampler", 64) == 64 * 512


# --- distributions ---------------------------------------------------------------------------------

# fmt: off
KNOWN_FLOATS = [
    ("RandomUniform", "float16", [[0.0458984375, 0.8896484375, 0.1328125, 0.9833984375, 0.3984375],
                                  [0.431640625, 0.189453125, 0.986328125, 0.4873046875, 0.8876953125]]),
    ("RandomUniform", ml_dtypes.bfloat16, [[0.3671875, 0.1171875, 0.0625, 0.8671875, 0.1875],
                                           [0.453125, 0.515625, 0.890625, 0.8984375, 0.1015625]]),
    ("RandomUniform", "float32",
     [[0.388311267, 0.663682818, 0.191910744, 0.706052661, 0.963183403],
      [0.49199605, 0.940696955, 0.320188761, 0.172911048, 0.314561486]]),
    ("RandomUniform", "float64",
     [[0.106490756689911, 0.535286575008282, 0.705468033116838, 0.677041075468075, 0.0682382277650431],
      [0.935969050863193, 0.56151074389538, 0.516492831252916, 0.550189470435654, 0.56963067615774]]),
    ("RandomStandardNormal", "float32",
     [[-1.17808282, -0.709941387, -1.74815798, -0.495372266, 0.243038878],
      [-0.433596194, 1.10930777, 1.3355999, 0.702753365, 1.19459927]]),
    ("RandomStandardNormal", "float64",
     [[-0.46540936664255, -2.06465210142725, -0.749092720235775, -0.369658945304924, -1.0471234980004],
      [-0.137125984554196, -0.336960236669958, -0.356521317980101, -1.09283131809373, -0.614475291752735]]),
    ("TruncatedNormal", "float16", [[-1.177734375, -0.7099609375, -1.748046875, -0.495361328, -0.8642578125],
                                    [-0.43359375, 1.109375, 1.3359375, 0.702636719, 1.2158203125]]),
    ("TruncatedNormal", "float32",
     [[-1.17808282, -0.709941387, -1.74815798, -0.495372266, -0.864153266],
      [-0.433596194, 1.10930777, 1.3355999, 0.702753365, 1.21549916]]),
    ("TruncatedNormal", "float64",
     [[-0.46540936664255, -0.749092720235775, -0.496614959082126, 0.854718496146115, 0.0909147314970243],
      [-0.137125984554196, -0.336960236669958, -0.032426121313371, 0.436659833570533, 1.5773576668182]]),
]
# fmt: on


@pytest.mark.parametrize(("op_type", "dtype", "expected"), KNOWN_FLOATS)
def test_floats_are_tensorflows(op_type, dtype, expected):
    got = executions(op_type, lambda state: FILLS[op_type](np, state, (5,), dtype), 5)
    assert all(array.dtype == dtype for array in got)
    np.testing.assert_allclose(
        np.array(got, np.float64), expected, rtol=1e-14 if dtype == "float64" else 3e-7
    )


def test_integers_are_tensorflows():
    got = executions(
        "RandomUniformInt", lambda s: philox.random_uniform_int(np, s, (5,), "int32", -10, 10), 5
    )
    assert [array.tolist() for array in got] == [[1, 9, -6, 9, 2], [4, 0, 8, -3, -1]]
    got = executions(
        "RandomUniformInt", lambda s: philox.random_uniform_int(np, s, (3,), "int64", 0, 10**15), 3
    )
    assert [array.tolist() for array in got] == [
        [501104432985135, 85231834960008, 253500515371416],
        [762056875720764, 551260852331803, 813376086517484],
    ]


def test_shuffles_are_tensorflows():
    got = executions("RandomShuffle", lambda state: philox.random_shuffle(np, state, 10), 10)
    assert [array.tolist() for array in got] == [
        [1, 3, 2, 7, 6, 9, 0, 5, 8, 4],
        [8, 4, 7, 1, 9, 6, 0, 5, 3, 2],
    ]


def test_choices_are_tensorflows():
    logits = np.array([[0, 1, 2], [3, 0, 0]], np.float32)
    got = executions("Multinomial", lambda s: philox.multinomial(np, s, logits, 5), 2, num_samples=5)
    assert [array.tolist() for array in got] == [
        [[1, 2, 2, 2, 0], [0, 0, 1, 1, 0]],
        [[2, 2, 2, 2, 2], [0, 0, 0, 0, 0]],
    ]


def test_stateless_seeds_are_scrambled_like_tensorflows():
    expected = [0.264584899, 0.454090834, 0.0423921347]
    state = philox.stateless_state(np, np.array([5, -9], np.int32))
    np.testing.assert_array_equal(philox.random_uniform(np, state, (3,), np.float32), np.float32(expected))
    again = traced(lambda seed: philox.stateless_state(jnp, seed), np.array([5, -9]))
    np.testing.assert_array_equal(again, state)


# --- both lives ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op_type", FILLS)
def test_both_lives_draw_the_same_floats(op_type, dtype):
    state = philox.skip(philox.initial_state(*SEEDS), 2**64 - 100)
    host = FILLS[op_type](np, state, (3, 1111), dtype)
    compiled = traced(lambda rng: FILLS[op_type](jnp, rng, (3, 1111), dtype), state)
    assert host.dtype == compiled.dtype == dtype
    if np.dtype(dtype) == np.float64 and op_type in ("RandomStandardNormal", "TruncatedNormal"):
        # numpy's logarithms and sines of 64 bits have another last digit on some processors.
        np.testing.assert_allclose(host, compiled, rtol=2e-15, atol=0)
    else:
        np.testing.assert_array_equal(host, compiled)


def test_both_lives_truncate_the_same_when_only_missing_groups_are_redrawn():
    state = philox.initial_state(*SEEDS)
    host = philox_normal.truncated_normal(np, state, (100_001,), np.float32)
    compiled = traced(lambda rng: philox_normal.truncated_normal(jnp, rng, (100_001,), np.float32), state)
    np.testing.assert_array_equal(host, compiled)
    assert abs(host).max() < 2


def test_a_round_of_redrawing_that_leaves_a_group_unfilled_is_followed_by_another(monkeypatch):
    monkeypatch.setattr(philox_normal, "_ROUND_BLOCKS", 1)
    state = philox.initial_state(*SEEDS)
    host = philox_normal.truncated_normal(np, state, (1001,), np.float64)
    compiled = traced(lambda rng: philox_normal.truncated_normal(jnp, rng, (1001,), np.float64), state)
    np.testing.assert_allclose(host, compiled, rtol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("int32", -7, 1000), ("int32", -(2**31), 2**31 - 1), ("int64", -(2**63), 2**63 - 1)],
)
def test_both_lives_draw_the_same_integers(dtype, low, high):
    state = philox.initial_state(*SEEDS)
    host = philox.random_uniform_int(np, state, (99,), dtype, low, high)
    compiled = traced(lambda rng: philox.random_uniform_int(jnp, rng, (99,), dtype, low, high), state)
    assert host.dtype == compiled.dtype == dtype
    np.testing.assert_array_equal(host, compiled)


@pytest.mark.parametrize("size", [0, 1, 2, 57])
def test_both_lives_shuffle_the_same(size):
    state = philox.initial_state(*SEEDS)
    host = philox.random_shuffle(np, state, size)
    np.testing.assert_array_equal(host, traced(lambda rng: philox.random_shuffle(jnp, rng, size), state))
    assert sorted(host.tolist()) == list(range(size))


def test_both_lives_choose_the_same_and_never_an_infinite_logit():
    state = philox.initial_state(*SEEDS)
    logits = np.array([[0, -np.inf, 1, 2], [np.nan, 0, 0, np.inf]], np.float32)
    host = philox.multinomial(np, state, logits, 50)
    compiled = traced(lambda rng: philox.multinomial(jnp, rng, jnp.asarray(logits), 50), state)
    np.testing.assert_array_equal(host, compiled)
    assert set(host[0]) == {0, 2, 3}
    assert set(host[1]) == {1, 2}


@pytest.mark.parametrize("op_type", FILLS)
def test_an_empty_shape_draws_nothing(op_type):
    state = philox.initial_state(*SEEDS)
    assert FILLS[op_type](np, state, (0, 3), np.float32).shape == (0, 3)
    assert FILLS[op_type](np, state, (), np.float32).shape == ()


def test_pieces_of_the_numpy_life_join_without_a_seam():
    state = philox.initial_state(*SEEDS)
    size = 4 * philox.CHUNK + 8
    whole = philox.random_uniform(np, state, (size,), np.float32)
    tail = philox.random_uniform(np, philox.skip(state, philox.CHUNK - 1), (12,), np.float32)
    np.testing.assert_array_equal(whole[-12:], tail)


@pytest.mark.parametrize("classes", [41, 100, 1000])
def test_both_lives_pick_the_same_of_many_classes(classes):
    logits = np.random.RandomState(1).randn(5, classes)
    logits[0, : classes // 2] = logits[1, classes // 2 :] = logits[2] = -np.inf
    logits[3, 7] = np.nan
    state = philox.initial_state(*SEEDS)
    host = philox.multinomial(np, state, logits, 9)
    compiled = traced(lambda rng: philox.multinomial(jnp, rng, jnp.array(logits), 9), state)
    np.testing.assert_array_equal(host, compiled)
