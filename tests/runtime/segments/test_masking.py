"""Programs run on padded arrays, and give what they give without padding."""

import numpy as np
import pytest

from tensorfleet.runtime.devices import load_jax
from tensorfleet.runtime.segments.masking import Masking, Unpaddable, Value
from tensorfleet.runtime.segments.padded_sizes import Bucket

SIZE, PROBE = 20, 17


def masked(function, *args, lengths=(18,), sizes=(SIZE,), probes=(PROBE,)):
    """The results of a function of arrays, from arrays padded with NaN or -1; a dimension of a length has size 1000 + it."""
    jax, jnp = load_jax()
    bucket = Bucket(sizes, probes)

    def shaped(array, by):
        return tuple(by[d - 1000] if d >= 1000 else d for d in array)

    def spec(by):
        return [jax.ShapeDtypeStruct(shaped(shape, by), dtype) for shape, dtype, _ in args]

    full = jax.make_jaxpr(function)(*spec(sizes))
    probe = jax.make_jaxpr(function)(*spec(probes))
    given = []
    for shape, dtype, values in args:
        array = np.full(shaped(shape, sizes), -1 if np.dtype(dtype).kind == "i" else np.nan, dtype)
        real = shaped(shape, lengths)
        array[tuple(map(slice, real))] = values(real)
        given.append(array)

    def run(lengths, *arrays):
        masking = Masking(jax, jnp, bucket, lengths)
        values = [
            Value(a, masking.tags(v.aval.shape, w.aval.shape))
            for a, v, w in zip(arrays, full.jaxpr.invars, probe.jaxpr.invars, strict=True)
        ]
        results = masking.run(full, probe, values)
        run.tags = [r.tags for r in results]
        return [r.array for r in results]

    made = jax.jit(run)(np.array(lengths, np.int32), *given)
    cut = [
        np.asarray(m)[tuple(slice(None) if t is None else slice(lengths[t.length] * t.factor) for t in tags)]
        for m, tags in zip(made, run.tags, strict=True)
    ]
    expected = function(
        *[jnp.asarray(values(shaped(shape, lengths)), dtype) for shape, dtype, values in args]
    )
    expected = expected if isinstance(expected, (tuple, list)) else [expected]
    for got, right in zip(cut, expected, strict=True):
        np.testing.assert_allclose(got, np.asarray(right), rtol=2e-6, atol=2e-5)
    return cut


def random(shape):
    return np.random.RandomState(sum(shape)).standard_normal(shape)


N = 1000  # stands for the first length
ROWS = ((N, 6), np.float32, random)
CUBE = ((N, 4, 6), np.float32, random)


@pytest.mark.parametrize(
    "function",
    [
        lambda jnp, x: jnp.tanh(x) * 2 + 1,
        lambda jnp, x: jnp.sum(x),
        lambda jnp, x: jnp.mean(x),
        lambda jnp, x: jnp.mean(x, 0),
        lambda jnp, x: jnp.max(x, 0),
        lambda jnp, x: jnp.min(x, 0),
        lambda jnp, x: jnp.argmax(x, 0),
        lambda jnp, x: jnp.argmin(x, 0),
        lambda jnp, x: jnp.prod(x, 0),
        lambda jnp, x: jnp.all(x < 9),
        lambda jnp, x: jnp.any(x > 9),
        lambda jnp, x: x.T @ x,
        lambda jnp, x: x @ x.T,
        lambda jnp, x: jnp.cumsum(x, 0),
        lambda jnp, x: jnp.concatenate([x, x], 1),
        lambda jnp, x: x[:, 1:3],
        lambda jnp, x: x / x.shape[0],
        lambda jnp, x: jnp.ones(x.shape) * x,
        lambda jnp, x: jnp.exp(x) / jnp.sum(jnp.exp(x), 0),
        lambda jnp, x: jnp.where(x > 0, x, jnp.arange(6.0)),
        lambda jnp, x: jnp.arange(x.shape[0]),
    ],
)
def test_padding_does_not_change_results(function):
    _, jnp = load_jax()
    masked(lambda x: function(jnp, x), ROWS)


def test_rows_may_be_joined_and_divided_again():
    masked(lambda x: x.reshape(-1, 6).sum(1).reshape(-1, 4), CUBE)
    masked(lambda x: x.reshape(-1).sum(), CUBE)


def test_the_real_length_is_known():
    _, jnp = load_jax()
    (made,) = masked(lambda x: jnp.asarray([x.shape[0], 6 * x.shape[0], 5]), ROWS)
    assert made.tolist() == [18, 108, 5]


def test_two_lengths_are_kept_apart():
    masked(
        lambda x, y: x.T @ x @ y.T,
        ((1000, 6), np.float32, random),
        ((1001, 6), np.float32, random),
        lengths=(18, 33),
        sizes=(20, 40),
        probes=(17, 33),
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda jnp, x: x[::-1],
        lambda jnp, x: x[:5],
        lambda jnp, x: x[1:],
        lambda jnp, x: jnp.concatenate([x, x], 0),
        lambda jnp, x: jnp.sort(x, 0),
        lambda jnp, x: x.T.reshape(-1),
        lambda jnp, x: x[:, : x.shape[0] // 3],
        lambda jnp, x: x * np.sqrt(x.shape[0]),
        lambda jnp, x: x ** x.shape[0],
        lambda jnp, x: x * np.linspace(0, 1, x.shape[0], dtype=np.float32)[:, None],
        lambda jnp, x: jnp.cumsum(x, 0) if x.shape[0] == SIZE else x,
        lambda jnp, x: jnp.flip(jnp.cumsum(jnp.flip(x, 0), 0), 0),
    ],
)
def test_a_program_that_padding_might_change_is_refused(function):
    _, jnp = load_jax()
    with pytest.raises(Unpaddable):
        masked(lambda x: function(jnp, x), ROWS)
