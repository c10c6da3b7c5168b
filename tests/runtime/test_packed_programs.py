"""Generated programs give the same values with packs and without, in one process and on a server."""

import random
from functools import partial

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.segments import packing, trial
from tensorfleet.runtime.variable_packs import VariablePack
from tests.support.waiting import SECONDS, in_background

SHAPES = [(), (), (), (1,), (5,), (2, 3), (40, 40), (80, 80)]  # the last is too large for a pack
TYPES = [tf.float32, tf.float32, tf.float32, tf.float64, tf.int32]
STEPS = 6


def made_variables(rng):
    found = []
    for n in range(rng.randint(14, 30)):
        dtype, shape = rng.choice(TYPES), rng.choice(SHAPES)
        start = np.full(shape, n % 5 + 1, dtype.as_numpy_dtype)
        resource = rng.random() < 0.3
        found.append(tf.get_variable(f"v{n}", initializer=start, use_resource=resource))
    return found


def made_program(seed):
    """Steps that train, update, assign, read and branch, and the variables; each step reads what it has made."""
    rng = random.Random(seed)
    variables = made_variables(rng)
    floats = [v for v in variables if v.dtype.base_dtype.is_floating]
    wholes = [v for v in variables if v not in floats]
    terms = [
        tf.cast(tf.reduce_mean(tf.square(v - tf.cast(n % 3, v.dtype.base_dtype))), tf.float32)
        for n, v in enumerate(floats)
    ]
    loss = tf.add_n(terms)
    optimizers = [
        tf.train.GradientDescentOptimizer(0.1),
        tf.train.MomentumOptimizer(0.05, 0.9),
        tf.train.AdamOptimizer(0.01),
    ]
    steps = [rng.choice(optimizers).minimize(loss)]
    part = rng.sample(floats, len(floats) // 2)
    steps.append(rng.choice(optimizers).minimize(loss, var_list=part))
    steps.append(tf.group([v.assign_add(v - v + 1) for v in wholes], tf.tanh(loss)))
    one, other = rng.sample(floats, 2)
    steps.append(one.assign(tf.ones_like(one) * 3))
    branch = tf.cond(loss > 1.0, lambda: tf.identity(loss), lambda: -loss)
    with tf.control_dependencies([branch]):
        steps.append(other.assign_sub(tf.ones_like(other)))
    order = [rng.choice(steps) for _ in range(STEPS)]
    return [steps[0], *order], loss, branch, variables


def values_of(seed, target="", path=None):
    with tf.Graph().as_default():
        steps, loss, branch, variables = made_program(seed)
        saver = tf.train.Saver()
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
            seen = []
            for n, step in enumerate(steps):
                _, value = session.run([step, loss])
                seen += [value, session.run(branch), session.run(variables[n])]
                if path and n == len(steps) // 2:
                    saver.restore(session, saver.save(session, path))
            return [*seen, *session.run(variables)]


def assert_same(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_packed_and_unpacked_programs_agree(seed, always_compile, monkeypatch, tmp_path, server):
    begun = []
    begin = VariablePack.begin
    monkeypatch.setattr(VariablePack, "begin", lambda pack, held: begun.append(pack) or begin(pack, held))
    packed = values_of(seed, path=str(tmp_path / "model"))
    served = values_of(seed, server.target)
    assert any(pack.active for pack in begun)
    begun.clear()
    monkeypatch.setattr(packing, "_MIN_MEMBERS", 1 << 30)
    monkeypatch.setattr(trial, "units_of", lambda segment: None)
    plain = values_of(seed)
    assert not begun
    assert_same(packed, plain)
    assert_same(served, plain)


def test_packed_programs_repeat_bit_by_bit(always_compile):
    first, second = values_of(1), values_of(1)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_two_sessions_of_one_server_in_two_threads_lose_no_update(always_compile, server):
    variables = [tf.Variable(np.zeros(n % 3 + 1, np.float32), name=f"v{n}") for n in range(20)]
    ones = [tf.cos(v * 0.0) for v in variables]
    steps = [
        tf.group([v.assign_add(one, use_locking=True) for v, one in zip(variables, ones, strict=True)]),
        tf.group(
            [v.assign_add(one, use_locking=True) for v, one in zip(variables[5:], ones[5:], strict=True)]
        ),
    ]
    with tf.Session(server.target) as first, tf.Session(server.target) as second:
        first.run(tf.global_variables_initializer())

        def work(session, step):
            for _ in range(40):
                session.run(step)

        futures = [in_background(partial(work, *pair)) for pair in zip((first, second), steps, strict=True)]
        for future in futures:
            future.result(SECONDS)
        for n, value in enumerate(second.run(list(variables))):
            assert value.tolist() == [80.0 if n >= 5 else 40.0] * (n % 3 + 1)
