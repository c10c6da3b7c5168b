"""Functions of JAX as ops: the same values and gradients as JAX itself gives, wherever they run."""

import functools
import gc
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorfleet as tf
from tensorfleet.graph import registry
from tensorfleet.kernels.exported_functions import find_traced
from tensorfleet.ops.control.jax_call import exported_of
from tensorfleet.passes.pipeline import make_plan
from tensorfleet.passes.place import Placer
from tensorfleet.testing.cluster import ProcessCluster
from tests.support.sessions import run, run_initialized

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
W = np.linspace(-1, 2, 20, dtype=np.float32).reshape(4, 5)


def layer(params, x):
    return jnp.tanh(x @ params["w"] + params["b"])


@pytest.fixture
def narrow():
    """JAX as it comes, without the 64-bit types that TensorFleet turns on: what a user compares with."""
    with jax.enable_x64(False):
        yield


# -- values ------------------------------------------------------------------------------------------


def test_the_results_have_the_structure_of_the_functions():
    def function(pair, *, scale):
        a, b = pair["both"]
        return {"sum": a + b, "scaled": [a * scale, (b * scale,)]}

    out = tf.fleet.jax_op(function)(
        {"both": (tf.constant([1.0]), tf.constant([2.0]))}, scale=tf.constant(3.0)
    )
    assert out["sum"].shape == [1] and out["scaled"][0].dtype == tf.float32
    value = run(out)
    assert value["sum"] == [3.0] and value["scaled"][0] == [3.0] and value["scaled"][1][0] == [6.0]


def test_variables_numbers_and_arrays_may_be_arguments():
    w = tf.Variable(2.0)
    assert run_initialized(tf.fleet.jax_op(lambda a, b, c: a * b + c)(w, 3.0, np.float32(1))) == 7.0


def test_the_op_has_the_functions_name():
    assert tf.fleet.jax_op(layer)({"w": W, "b": W[0]}, X).op.name == "layer"
    assert tf.fleet.jax_op(lambda x: x)(X).op.name == "JaxCall"
    assert tf.fleet.jax_op(jnp.sin, name="wave")(X).op.name == "wave"


def test_it_may_be_used_as_a_decorator():
    @functools.partial(tf.fleet.jax_op, static_argnames="power")
    def raised(x, power):
        """Raised."""
        return x**power

    assert raised.__doc__ == "Raised."
    np.testing.assert_array_equal(run(raised(X, power=2)), X**2)
    np.testing.assert_allclose(run(raised(X, 3)), X**3, rtol=1e-6)


def test_static_arguments_may_be_given_by_position():
    op = tf.fleet.jax_op(lambda x, axis, keep: jnp.sum(x, axis, keepdims=keep), static_argnums=(1, -1))
    assert run(op(X, 0, True)).shape == (1, 4)
    assert run(op(X, 1, False)).shape == (3,)


def test_the_function_is_traced_once_for_each_type():
    traced = []

    def function(x):
        traced.append(x.shape)
        return x * 2

    op = tf.fleet.jax_op(function)
    for _ in range(3):
        op(X)
    op(X[0])
    assert traced == [(3, 4), (4,)]


def test_64_bit_types_are_on_only_where_a_tensor_has_them():
    made = tf.fleet.jax_op(lambda x: (x, jnp.arange(3), jnp.zeros(2)))
    assert [t.dtype for t in made(X)] == [tf.float32, tf.int32, tf.float32]
    assert [t.dtype for t in made(X.astype(np.float64))] == [tf.float64, tf.int64, tf.float64]


@pytest.mark.parametrize(
    "dtype", [tf.float16, tf.bfloat16, tf.float64, tf.int8, tf.uint32, tf.int64, tf.complex64, tf.bool]
)
def test_every_type_of_numbers_passes_through(dtype):
    value = run(tf.cast(tf.constant([0, 1, 2]), dtype))
    np.testing.assert_array_equal(run(tf.fleet.jax_op(lambda x: x[::-1])(tf.constant(value))), value[::-1])


def test_it_is_part_of_the_segment_around_it():
    """There is one program, and no call back into Python."""
    traced = []
    x = tf.placeholder(tf.float32, [3, 4])
    y = tf.reduce_sum(tf.fleet.jax_op(lambda a: traced.append(1) or jnp.sin(a))(x * 2.0) + 1.0)
    plan = make_plan(
        tf.get_default_graph(), [y], [], [x], Placer(["/job:localhost/replica:0/task:0/device:CPU:0"])
    )
    parts = [part for part in plan.parts if "FleetJaxCall" in [op.type for op in part.ops]]
    assert [op.type for op in parts[0].ops if op.type != "Const"] == ["Mul", "FleetJaxCall", "AddV2", "Sum"]
    for _ in range(3):
        assert run(y, {x: X}) == pytest.approx(np.sum(np.sin(X * 2) + 1), rel=1e-5)
    assert traced == [1]


@pytest.mark.parametrize("size", [1, 3, 8])
def test_a_batch_may_have_any_size(size):
    x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None])
    out = tf.fleet.jax_op(lambda x, y: jnp.concatenate([x, x * y[:, None]]))(x, y)
    mean = tf.fleet.jax_op(lambda x: x.mean())(x)
    assert out.shape.as_list() == [None, 4] and mean.shape == []
    a, b = np.random.rand(size, 4).astype(np.float32), np.random.rand(size).astype(np.float32)
    both, average = run([out, mean], {x: a, y: b})
    np.testing.assert_allclose(both, np.concatenate([a, a * b[:, None]]))
    np.testing.assert_allclose(average, a.mean(), rtol=1e-6)


def test_sizes_may_be_named():
    x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 4])
    both = tf.fleet.jax_op(lambda x, y: jnp.concatenate([x, y]), shapes=("m, _", "n, _"))(x, y)
    assert run(both, {x: X, y: X[:2]}).shape == (5, 4)


def test_random_numbers_come_of_a_key(narrow):
    data = np.asarray(jax.random.key_data(jax.random.key(7)))

    def drawn(data, step):
        return jax.random.normal(jax.random.fold_in(jax.random.wrap_key_data(data), step), (3,))

    op = tf.fleet.jax_op(drawn)(tf.constant(data), tf.constant(5))
    first, again = run(op), run(op)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first, drawn(data, 5), rtol=1e-6)


def test_it_works_in_branches_and_loops():
    op = tf.fleet.jax_op(lambda x: x * 3.0)
    taken = tf.cond(
        tf.placeholder_with_default(True, []), lambda: op(tf.constant(2.0)), lambda: tf.constant(0.0)
    )
    x = tf.constant(1.0)
    _, looped = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, op(a)), [0, x])
    value, total, slope = run([taken, looped, tf.gradients(looped, x)[0]])
    assert (value, total, slope) == (6.0, 27.0, 27.0)


def test_linear_algebra_runs_in_batches():
    a = np.stack([np.eye(3) * k + 0.1 for k in (1, 2, 3)]).astype(np.float32)
    x = tf.placeholder(tf.float32, [3, 3, 3])
    out = tf.fleet.jax_op(lambda a: (jnp.linalg.cholesky(a), jnp.linalg.inv(a), jnp.linalg.eigh(a)[0]))(x)
    chol, inverse, values = run(out, {x: a})
    np.testing.assert_allclose(chol, np.linalg.cholesky(a), rtol=1e-5)
    np.testing.assert_allclose(inverse, np.linalg.inv(a), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a), rtol=1e-5)


# None makes large numbers of small ones: the sine of these would be that of their last bit.
UNARY = [jnp.sin, jnp.tanh, jax.nn.gelu, jax.nn.softmax, lambda x: x**3 / (1 + x * x), jnp.abs]
UNARY.append(lambda x: jnp.cumsum(jnp.stack([x, x * 2]), 0)[1])  # along a size that is known
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@settings(deadline=None, max_examples=6)
@given(st.lists(st.sampled_from(range(len(UNARY))), min_size=1, max_size=4), SHAPES, st.integers(0, 9))
def test_random_functions_give_what_jax_gives_in_numpy_and_in_xla(chosen, shape, seed):
    def function(x, y):
        for i in chosen:
            x = UNARY[i](x) + y
        return x, jnp.sum(x * y)

    a, b = np.random.RandomState(seed).randn(2, *shape).astype(np.float32)
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float32, [None, *shape[1:]]), tf.placeholder(tf.float32, [None, *shape[1:]])
        out = tf.fleet.jax_op(function)(x, y)
        slopes = tf.gradients(out[1], [x, y])
        compiled = run([*out, *slopes], {x: a, y: b})
        plain = registry.get("FleetJaxCall").kernel(np, [a, b], op=out[0].op)
    with jax.enable_x64(False):
        expected = [*function(a, b), *jax.grad(lambda *p: function(*p)[1], (0, 1))(a, b)]
    for got, wanted in zip(compiled, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-4)
    for got, wanted in zip(plain, expected[:2], strict=True):
        assert isinstance(got, np.ndarray)
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-4)


# -- gradients ---------------------------------------------------------------------------------------


def test_gradients_of_any_order_are_those_of_jax(narrow):
    def function(x):
        return jnp.sum(jnp.sin(x) * x**3)

    x = tf.placeholder(tf.float32, [None])
    slopes, expected, y, f = [], [], tf.fleet.jax_op(function)(x), function
    for _ in range(3):
        y = tf.gradients(y, x)[0]
        slopes.append(y)
        f = (lambda g: lambda v: jnp.sum(jax.grad(g)(v)))(f)
        expected.append(f)
    value = np.array([0.3, -1.2, 2.0], np.float32)
    for got, g, wanted in zip(run(slopes, {x: value}), [function, *expected], expected, strict=False):
        np.testing.assert_allclose(got.sum(), wanted(value), rtol=1e-4)
        np.testing.assert_allclose(got, jax.grad(g)(value), rtol=1e-4)


def test_custom_gradients_are_respected():
    @jax.custom_vjp
    def clipped(x):
        return x * 2

    clipped.defvjp(lambda x: (x * 2, None), lambda _, g: (jnp.clip(g, -0.5, 0.5),))
    plain = tf.fleet.jax_op(lambda x: x * 2)
    x, y = tf.constant([1.0]), tf.constant([1.0])
    slopes = tf.gradients([tf.fleet.jax_op(clipped)(x) * 10.0, plain(y) * 10.0], [x, y])
    first, second = run(slopes)
    assert first == [0.5] and second == [20.0]  # one program, two gradients


def test_whole_numbers_and_unused_arguments_have_no_gradient():
    x, i, unused = tf.constant([1.0, 2.0]), tf.constant([0, 1]), tf.constant(3.0)
    y, count = tf.fleet.jax_op(lambda x, i, unused: (x[i] * 2, i + 1))(x, i, unused)
    slope, none, zero = tf.gradients(y, [x, i, unused])
    assert none is None
    slope, zero = run([slope, zero])
    np.testing.assert_array_equal(slope, [2.0, 2.0])
    assert zero == 0.0
    assert tf.gradients(tf.cast(count, tf.float32), x) == [None]


def test_gradients_of_complex_numbers_are_tensorflows():
    z = tf.constant([1 + 2j, -0.5 + 1j], tf.complex64)
    ours = tf.gradients(tf.fleet.jax_op(lambda z: jnp.sum(jnp.real(z * z * jnp.conj(z))))(z), z)[0]
    theirs = tf.gradients(tf.reduce_sum(tf.real(z * z * tf.conj(z))), z)[0]
    np.testing.assert_allclose(*run([ours, theirs]), rtol=1e-5)


def test_a_function_that_cannot_be_differentiated_says_so_when_gradients_are_asked_for():
    op = tf.fleet.jax_op(lambda x: jax.lax.while_loop(lambda v: jnp.all(v < 9), lambda v: v * 2, x))
    x = tf.constant([1.0])
    y = op(x)
    assert run(y) == [16.0]
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
        tf.gradients(y, x)


def test_a_graph_keeps_its_functions_and_nothing_else_does():
    def build():
        with tf.Graph().as_default():
            x = tf.constant([1.0])
            y = tf.fleet.jax_op(lambda v: v * 2)(x)
            gc.collect()
            tf.gradients(y, x)  # the function is still there
            return exported_of(y.op)

    exported = build()
    gc.collect()
    jax.clear_caches()  # JAX keeps functions that it has traced
    gc.collect()
    assert find_traced(exported) is None


# -- on its way --------------------------------------------------------------------------------------


_IMPORTED = """
import sys
import numpy as np
import tensorfleet as tf

graph = tf.GraphDef.FromString(sys.stdin.buffer.read())
x = tf.placeholder(tf.float32, [None, 4])
w = tf.constant(np.linspace(-1, 2, 20, dtype=np.float32).reshape(4, 5))
(y,) = tf.import_graph_def(graph, {"x": x, "w": w}, ["layer:0"])
assert y.shape.as_list() == [None, 5], y
slope = tf.gradients(tf.reduce_sum(y), x)[0]
second = tf.gradients(tf.reduce_sum(slope), x)[0]
with tf.Session() as session:
    values = session.run([y, slope, second], {x: np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)})
try:
    tf.gradients(second, x)
except LookupError as e:
    print(e, file=sys.stderr)
np.savez(sys.stdout.buffer, *values)
"""


def test_a_graph_runs_and_is_differentiated_where_the_function_is_unknown(tmp_path, narrow):
    x, w = tf.placeholder(tf.float32, [None, 4], "x"), tf.placeholder(tf.float32, [4, 5], "w")
    tf.fleet.jax_op(layer, vjp_order=2)({"w": w, "b": np.zeros(5, np.float32)}, x)
    content = tf.get_default_graph().as_graph_def().SerializeToString()
    done = subprocess.run([sys.executable, "-c", _IMPORTED], input=content, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    (tmp_path / "values.npz").write_bytes(done.stdout)
    values = np.load(tmp_path / "values.npz")

    def total(v):
        return jnp.sum(layer({"w": W, "b": np.zeros(5, np.float32)}, v))

    np.testing.assert_allclose(values["arr_0"], np.tanh(X @ W), rtol=1e-5)
    np.testing.assert_allclose(values["arr_1"], jax.grad(total)(X), rtol=1e-4, atol=1e-5)
    second = jax.grad(lambda v: jnp.sum(jax.grad(total)(v)))(X)
    np.testing.assert_allclose(values["arr_2"], second, rtol=1e-3, atol=1e-4)
    assert "came without the gradient of its JAX function 'layer_gradient_gradient'" in done.stderr.decode()


def test_no_python_is_in_the_graph():
    tf.fleet.jax_op(layer)({"w": W, "b": W[0]}, X)
    content = tf.get_default_graph().as_graph_def().SerializeToString()
    assert b"stablehlo.dot_general" in content
    assert b"test_jax_functions" not in content and b".py" not in content


@pytest.fixture(scope="module")
def cluster():
    with ProcessCluster(ps=1, worker=1) as result:
        yield result


def test_it_runs_on_another_task(cluster):
    with tf.device("/job:ps/task:0"):
        w = tf.Variable(W)
        x = tf.placeholder(tf.float32, [None, 4])
        y = tf.fleet.jax_op(lambda w, x: jnp.tanh(x @ w))(w, x)
    with tf.device("/job:worker/task:0"):
        slope = tf.gradients(tf.reduce_sum(y), x)[0]
    with tf.Session(cluster.target("worker", 0)) as session:
        session.run(w.initializer)
        for size in (3, 2):
            value, slopes = session.run([y, slope], {x: X[:size]})
            np.testing.assert_allclose(value, np.tanh(X[:size] @ W), rtol=1e-5)
            np.testing.assert_allclose(slopes, (1 - value**2) @ W.T, rtol=1e-4, atol=1e-5)


# -- what is refused ---------------------------------------------------------------------------------


def _refused(function, words, *arguments, error=(ValueError, TypeError), **options):
    with pytest.raises(error, match=words):
        tf.fleet.jax_op(function, **options)(*arguments)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x),
        lambda x: (jax.debug.print("{}", x), x)[1],
    ],
)
def test_callbacks_are_refused(function):
    _refused(
        function,
        "cannot become an op for \\(x: float32\\[3, 4\\]\\): it calls back into Python .*\n  Leave the callback out",
        X,
    )


def test_a_decision_by_values_is_refused():
    _refused(lambda x: x if x[0, 0] > 0 else -x, "(?s)depends on the value of x, .*\n.*jax.lax.cond", X)


def test_a_decision_by_an_unknown_size_is_refused():
    x = tf.placeholder(tf.float32, [None, 4])
    _refused(
        lambda x: x * 2 if x.shape[0] > 5 else x, "(?s)x: float32\\[b, 4\\].*\n.*static shapes, or relate", x
    )


def test_a_cumulative_sum_along_an_unknown_size_is_refused():
    words = "has 'stablehlo.dynamic_reduce_window' along a size that only a run knows.* Give it static shapes"
    with pytest.raises(ValueError, match=words):
        tf.fleet.jax_op(jnp.cumsum)(tf.placeholder(tf.float32, [None]))


def test_an_array_of_an_earlier_call_is_refused():
    left = []

    def function(x):
        left.append(x)
        return left[0] + x

    op = tf.fleet.jax_op(function)
    op(X)
    with pytest.raises(
        (TypeError, ValueError), match="uses arrays that an earlier call left in a Python variable"
    ):
        op(X[0])


def test_numpy_in_a_function_is_refused():
    _refused(lambda x: np.sin(np.asarray(x)), "jax.numpy", X)


def test_a_typed_key_is_refused():
    _refused(
        jax.random.normal, "key of 'normal' is a typed key .* Pass jax.random.key_data", jax.random.key(0)
    )
    _refused(lambda d: jax.random.wrap_key_data(d), "result 0 .*jax.random.key_data", np.zeros(2, np.uint32))


def test_a_key_of_the_wrong_type_is_refused():
    _refused(
        lambda key: jax.random.normal(key, (2,)),
        "uint32 tensor of shape \\[2\\] \\(key is int32\\[2\\]\\)",
        np.array([1, 2], np.int32),
    )


def test_arguments_that_are_no_tensors_are_refused():
    _refused(lambda x, mode: x, "mode of 'JaxCall' is 'same', .*static_argnames=\\('mode',\\)", X, "same")
    _refused(lambda tree: tree, "tree\\['a'\\] of 'JaxCall' is object", {"a": object()})
    _refused(lambda x: x, "x of 'JaxCall': JAX has no arrays of string", tf.constant(["a"]))


def test_unhashable_static_arguments_are_refused():
    _refused(lambda x, axes: x, "static argument 'axes' .* must be hashable", X, [1], static_argnames="axes")


def test_an_unknown_number_of_dimensions_is_refused():
    _refused(lambda x: x, "x of 'JaxCall' has an unknown number of dimensions", tf.placeholder(tf.float32))


@pytest.mark.parametrize("shapes", [("b",), ("b, _, _",), "b, _", ("_, _",), ("b, _", "b")])
def test_wrong_shapes_are_refused(shapes):
    _refused(lambda x: x, "shapes (of|says)", tf.placeholder(tf.float32, [None, 4]), shapes=shapes)


def test_options_are_checked():
    with pytest.raises(TypeError, match="fn must be a function of JAX, not 3"):
        tf.fleet.jax_op(3)
    with pytest.raises(ValueError, match="vjp_order must be 0 or more"):
        tf.fleet.jax_op(jnp.sin, vjp_order=-1)


def test_sizes_that_differ_in_a_run_are_refused():
    x, y = tf.placeholder(tf.float32, [None, 4], "x"), tf.placeholder(tf.float32, [None], "y")
    out = tf.fleet.jax_op(lambda images, labels: images * labels[:, None], name="loss")(x, y)
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match="labels of the JAX function 'loss' has shape \\[2\\]; .* \\[b\\], which wants b = 3, as images has",
    ):
        run(out, {x: X, y: [1, 2]})
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="images of .* has shape \\[0, 4\\]; .* wants b of 1 or more"
    ):
        run(out, {x: X[:0], y: []})
