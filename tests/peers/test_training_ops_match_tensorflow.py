"""Every Apply*, SparseApply* and Scatter* op: the same declaration and the same result as TensorFlow's."""

import re
import types
import warnings

import numpy as np
import pytest

import tensorfleet  # noqa: F401
from tensorfleet.graph import registry
from tensorfleet.graph.kernels import raise_now

TRAINING = sorted(n for n in registry.all_ops() if re.match(r"(Resource)?(Sparse)?Apply[A-Z]", n))
SCATTER = sorted(
    n for n in registry.all_ops() if re.match(r"(Resource)?Scatter(Nd)?(Update|Add|Sub|Mul|Div|Min|Max)$", n)
)
FLAGS = ("use_nesterov", "update_slots", "multiply_linear_by_lr")
INDICES = np.array([3, 0, 3, 5, 3, 0], np.int32)  # with duplicates
SCALARS = {
    "lr": 0.1, "alpha": 0.2, "l1": 0.05, "l2": 0.03, "l2_shrinkage": 0.02, "rho": 0.9, "momentum": 0.8,
    "epsilon": 1e-3, "beta1": 0.9, "beta2": 0.99, "beta1_power": 0.81, "beta2_power": 0.98, "lr_power": -0.5,
    "sign_decay": 0.7, "beta": 0.9, "logbase": 1.0, "global_step": 3,
}  # fmt: skip


@pytest.fixture(scope="module")
def tf():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import tensorflow

        tensorflow.compat.v1.disable_v2_behavior()
        return tensorflow


@pytest.mark.parametrize("name", TRAINING + SCATTER)
def test_declaration_equals(tf, name):
    from tensorflow.python.framework import op_def_registry

    theirs, ours = op_def_registry.get(name), registry.get(name)
    assert [a.name for a in ours.inputs] == [a.name for a in theirs.input_arg]
    assert [a.name for a in ours.outputs] == [a.name for a in theirs.output_arg]
    assert [a.is_ref for a in ours.inputs] == [a.is_ref for a in theirs.input_arg]
    assert list(ours.attrs) == [a.name for a in theirs.attr]
    for attr in theirs.attr:
        if attr.HasField("default_value"):
            kind = attr.default_value.WhichOneof("value")
            assert ours.attrs[attr.name].default == getattr(attr.default_value, kind)


def _values(spec: registry.OpSpec, dtype: type, scalars: dict) -> list[np.ndarray]:
    rng = np.random.RandomState(0)
    sparse = spec.rows is not None
    result = []
    for i, arg in enumerate(spec.inputs):
        if arg.name == "indices":
            value = INDICES
        elif arg.name in ("grad", "delta"):
            value = rng.randn(len(INDICES) if sparse else 7, 4).astype(dtype)
        elif i in spec.updates:
            value = rng.uniform(0.1, 1, (7, 4)).astype(dtype)
            value = value if i else value - dtype(0.5)
        else:
            value = np.array(scalars[arg.name], np.int64 if arg.name == "global_step" else dtype)
        result.append(value)
    if "mg" in [a.name for a in spec.inputs]:  # a mean is smaller than the root of the mean square
        result[1] = result[1] * dtype(0.1)
        result[2] = result[2] + dtype(1)
    return result


def _run_theirs(tf, name: str, spec: registry.OpSpec, values: list, attrs: dict) -> list[np.ndarray]:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        resource = name.startswith("Resource")
        variables, args = [], {}
        for i, (arg, value) in enumerate(zip(spec.inputs, values, strict=True)):
            if i in spec.updates:
                variables.append(v1.Variable(value, use_resource=resource))
                args[arg.name] = variables[-1].handle if resource else variables[-1]._variable
            else:
                args[arg.name] = tf.constant(value)
        step = getattr(tf.raw_ops, name)(**args, **attrs)
        session.run(v1.global_variables_initializer())
        session.run(step)
        return session.run([v.read_value() for v in variables])


def _run_ours(spec: registry.OpSpec, values: list, attrs: dict, xp=np) -> list[np.ndarray]:
    full = {n: attrs.get(n, a.default) for n, a in spec.attrs.items()}
    op = types.SimpleNamespace(spec=spec, _attrs=full)
    known = {"op": op} if "op" in spec.kernel_attrs else {}
    known |= {n: full[n] for n in spec.kernel_attrs if n != "op"}
    if spec.checks:
        known["check"] = raise_now
    values = [v.copy() for v in values]
    if spec.rows is not None:
        assert spec.kernel(np, *values, **known) is None
        return [values[u] for u in spec.updates]
    return list(spec.kernel(xp, *values, **known))


def _same(ours, theirs, rtol=2e-5):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert np.asarray(a).dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


def _variants(name: str) -> list[dict]:
    flag = next((f for f in FLAGS if f in registry.get(name).attrs), None)
    return [{}] if flag is None else [{flag: False}, {flag: True}]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", TRAINING)
def test_step_equals(tf, name, dtype):
    import jax
    import jax.numpy as jnp

    spec = registry.get(name)
    for attrs in _variants(name):
        for scalars in (SCALARS, SCALARS | {"l1": 0.0, "lr_power": -0.7}):
            values = _values(spec, dtype, scalars)
            theirs = _run_theirs(tf, name, spec, values, attrs)
            _same(_run_ours(spec, values, attrs), theirs)
            if spec.rows is None:
                with jax.enable_x64(True):
                    traced = jax.jit(lambda *v, attrs=attrs: _run_ours(spec, [*v], attrs, jnp))
                    _same(traced(*values), theirs)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("scalar", [False, True])
@pytest.mark.parametrize("name", [n for n in SCATTER if "Nd" not in n])
def test_scatter_equals(tf, name, scalar, dtype):
    spec, rng = registry.get(name), np.random.RandomState(1)
    indices = INDICES.reshape(2, 3)
    updates = np.array(3, dtype) if scalar else rng.randint(1, 9, (2, 3, 4)).astype(dtype)
    values = [rng.randint(-30, 30, (7, 4)).astype(dtype), indices, updates]
    _same(_run_ours(spec, values, {}), _run_theirs(tf, name, spec, values, {}))


@pytest.mark.parametrize("name", [n for n in SCATTER if "Nd" in n])
def test_scatter_nd_equals(tf, name):
    spec, rng = registry.get(name), np.random.RandomState(2)
    for indices, rest in (
        (np.array([[3], [0], [3]], np.int32), (4, 2)),
        (np.array([[[3, 1], [0, 0]], [[3, 1], [6, 3]]], np.int64), (2,)),
        (np.array([[3, 1, 0], [0, 0, 1], [3, 1, 0]], np.int32), ()),
        (np.zeros((0, 2), np.int32), (2,)),
    ):
        updates = rng.randint(1, 9, indices.shape[:-1] + rest).astype(np.float32)
        values = [rng.randint(-30, 30, (7, 4, 2)).astype(np.float32), indices, updates]
        _same(_run_ours(spec, values, {}), _run_theirs(tf, name, spec, values, {}))
