"""One walk over the whole op table: an op is covered by being registered with examples."""

import functools

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.graph import registry
from tensorfleet.graph.apply import apply_op
from tensorfleet.graph.kernels import Kernel
from tensorfleet.kernels import philox
from tensorfleet.runtime.devices import load_jax
from tensorfleet.testing.cases import all_cases, feed_for, placeholders_for

pytestmark = pytest.mark.slow  # left out by `make quick`

CASES = all_cases()


def arrays(sample):
    return [np.asarray(v) for x in sample.inputs for v in (x if isinstance(x, list) else [x])]


def traceable(name, sample):
    spec = registry.get(name)
    return not spec.host and spec.rows is None and all(a.dtype != object for a in arrays(sample))


def differentiable(name, sample):
    spec = registry.get(name)
    moves = any(a.dtype == np.float64 for a in arrays(sample))
    return sample.grad and moves and spec.differentiable and not (spec.rng or spec.updates or spec.host)


def cases(wanted=lambda name, sample: True):
    chosen = [c for c in CASES if wanted(c[0], c[2])]
    ids = [f"{name}-{i}" for name, i, _ in chosen]
    return pytest.mark.parametrize(("name", "index", "sample"), chosen, ids=ids)


TOLERANCE = {np.dtype(np.float16): 2e-2, np.dtype(np.float32): 2e-5, np.dtype(np.complex64): 2e-5}


def build(name, sample, unknown=False):
    """The op on placeholders (static inputs stay constants), in a graph of its own."""
    graph = tf.Graph()
    with graph.as_default():
        inputs = placeholders_for(name, sample, unknown)
        op = apply_op(name, *inputs, **sample.attrs)
    return graph, inputs, op


def arguments(op, sample):
    values = []
    for value in sample.inputs:
        values += [np.asarray(v) for v in value] if isinstance(value, list) else [np.asarray(value)]
    if op.spec.rng is not None:
        values.insert(0, philox.initial_state(op.get_attr("seed"), op.get_attr("seed2")))
    return values


def assert_close(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    if a.dtype == object or a.dtype.kind in "biu":
        np.testing.assert_array_equal(a, b)
        return
    tolerance = TOLERANCE.get(a.dtype, 3e-2 if a.dtype.itemsize == 2 else 1e-9)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=tolerance, atol=tolerance)


@cases()
def test_session_gives_the_declared_types_and_shapes(name, index, sample):
    for unknown in (False, True):
        graph, inputs, op = build(name, sample, unknown)
        with tf.Session(graph=graph) as session:
            values = session.run(op.outputs, feed_for(inputs, sample))
        for tensor, value in zip(op.outputs, values, strict=True):
            value = np.asarray(value)
            if tensor.dtype != tf.string:
                assert value.dtype == tensor.dtype.as_numpy_dtype, f"{tensor} came as {value.dtype}"
            assert tensor.shape.is_compatible_with(value.shape), f"{tensor} came with shape {value.shape}"


@cases(traceable)
def test_numpy_and_xla_lives_agree(name, index, sample):
    _, _, op = build(name, sample)
    jax, jnp = load_jax()
    values = arguments(op, sample)
    static = {p + (op.spec.rng is not None) for d in op.spec.static for p in range(*op.input_list(d))}
    moving = [i for i in range(len(values)) if i not in static]
    kernel = Kernel(op)

    def traced(args):
        full = list(values)
        for i, a in zip(moving, args, strict=True):
            full[i] = a
        return kernel.call(jnp, full, check=lambda *a: None)

    with np.errstate(all="ignore"):
        plain = kernel.call(np, values)
    compiled = jax.jit(traced)([values[i] for i in moving])
    for a, b in zip(plain, compiled, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert_close(a, b)


@cases(traceable)
def test_a_kernel_can_be_traced_when_only_one_input_is_not_known(name, index, sample):
    _, _, op = build(name, sample)
    jax, jnp = load_jax()
    values = arguments(op, sample)
    random = int(op.spec.rng is not None)  # where the numbers come from is never known
    static = {p + random for d in op.spec.static for p in range(*op.input_list(d))}
    moving = [i for i in range(random, len(values)) if i not in static]
    kernel = Kernel(op)

    def traced(one, *args):
        full = [*args[:random], *values[random:one], args[-1], *values[one + 1 :]]
        return kernel.call(jnp, full, check=lambda *a: None)

    for one in moving if len(moving) > 1 else ():
        jax.eval_shape(functools.partial(traced, one), *values[:random], values[one])


@cases()
def test_graph_def_round_trip(name, index, sample):
    graph, inputs, op = build(name, sample)
    copy = tf.Graph()
    with copy.as_default():
        tf.import_graph_def(graph.as_graph_def(), name="")
    assert copy.as_graph_def() == graph.as_graph_def()
    again = copy.get_operation_by_name(op.name)
    assert [t.shape.as_list() if t.shape.rank is not None else None for t in again.outputs] == [
        t.shape.as_list() if t.shape.rank is not None else None for t in op.outputs
    ]


@cases(differentiable)
def test_gradient_agrees_with_finite_differences(name, index, sample):
    graph, inputs, op = build(name, sample)
    tensors = [t for t in op.inputs if t.dtype == tf.float64 and t.op.type == "Placeholder"]
    outputs = [t for t in op.outputs if t.dtype == tf.float64]
    if not tensors or not outputs:
        return  # the float64 input is static, or the result is of another type: nothing to differentiate
    feed = feed_for(inputs, sample)
    random = np.random.RandomState(0)
    with graph.as_default(), tf.Session(graph=graph) as session:
        weights = [random.randn(*np.shape(v)) for v in session.run(outputs, feed)]
        grads = tf.gradients(outputs, tensors, [tf.constant(np.asarray(w)) for w in weights])
        grads = [None if g is None else tf.convert_to_tensor(g) for g in grads]
        run = session.make_callable(outputs, list(feed))
        for tensor, grad in zip(tensors, grads, strict=True):
            if grad is None:
                continue
            symbolic = session.run(grad, feed)
            position = list(feed).index(tensor)
            numeric = numeric_gradient(run, list(feed.values()), position, weights)
            np.testing.assert_allclose(symbolic, numeric, rtol=2e-4, atol=2e-5)


def numeric_gradient(run, values, position, weights, step=1e-6):
    base = np.array(values[position], np.float64)
    flat = base.ravel()
    out = np.zeros_like(flat)

    def total(x):
        values[position] = x.reshape(base.shape)
        return sum(float(np.sum(w * v)) for w, v in zip(weights, run(*values), strict=True))

    for i in range(flat.size):
        up, down = flat.copy(), flat.copy()
        up[i] += step
        down[i] -= step
        out[i] = (total(up) - total(down)) / (2 * step)
    return out.reshape(base.shape)


def test_every_ordinary_op_has_examples():
    exempt = {"Placeholder", "PlaceholderWithDefault", "Const", "NoOp", "FleetVjp"}
    exempt |= {"FleetJaxCall"}  # its attributes are a program
    functions = "PartitionedCall If StatelessIf Case StatelessCase While StatelessWhile For"
    exempt |= set(functions.split())  # made of functions
    exempt |= {name for name, spec in registry.all_ops().items() if spec.removed}  # in old graphs alone
    missing = [
        name
        for name, spec in registry.all_ops().items()
        if spec.pure and not spec.host and not spec.examples and name not in exempt
    ]
    assert not missing
