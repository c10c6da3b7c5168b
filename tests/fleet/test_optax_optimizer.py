"""Optax's optimizers give here what they give in JAX, for whole variables and for rows."""

import jax
import numpy as np
import optax
import pytest

import tensorfleet as tf
from tests.support.sessions import initialized, programs_of

START = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
TRANSFORMATIONS = {
    "adamw": lambda: optax.adamw(0.1),
    "sgd": lambda: optax.sgd(0.1, momentum=0.9),
    "lion": lambda: optax.lion(0.01),
    "rmsprop": lambda: optax.rmsprop(0.05),
    "a schedule": lambda: optax.adam(optax.exponential_decay(0.1, 2, 0.5)),
    "a chain": lambda: optax.chain(optax.clip(0.5), optax.add_decayed_weights(0.1), optax.sgd(0.1)),
    "changeable hyperparameters": lambda: optax.inject_hyperparams(optax.sgd)(learning_rate=0.1),
}


def in_jax(transformation, start, grads):
    """The value after each gradient."""
    with jax.enable_x64(False):
        state, value, values = transformation.init(start), start, []
        for grad in grads:
            updates, state = transformation.update(grad, state, value)
            value = optax.apply_updates(value, updates)
            values.append(np.asarray(value))
    return values


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_variable_moves_as_in_jax(name, resource):
    transformation = TRANSFORMATIONS[name]()
    w = tf.get_variable("w", initializer=START, use_resource=resource)
    grad = tf.placeholder(tf.float32, [3, 2])
    train = tf.fleet.OptaxOptimizer(transformation).apply_gradients([(grad, w)])
    grads = np.random.RandomState(1).randn(4, 3, 2).astype(np.float32)
    with initialized() as session:
        for value, expected in zip(grads, in_jax(transformation, START, grads), strict=True):
            session.run(train, {grad: value})
            np.testing.assert_allclose(session.run(w), expected, rtol=1e-5, atol=1e-6)


def test_minimize_trains():
    w = tf.Variable([3.0, -2.0])
    step = tf.train.get_or_create_global_step()
    loss = tf.reduce_sum(tf.square(w))
    train = tf.fleet.OptaxOptimizer(optax.adam(0.2)).minimize(loss, step)
    with initialized() as session:
        for _ in range(60):
            session.run(train)
        assert session.run(loss) < 0.05 and session.run(step) == 60


def test_a_step_computes_each_product_once_as_jax_does():
    """The function and its gradient are two programs in the graph; what both compute is shared."""
    transformation, random = optax.adamw(1e-3), np.random.RandomState(0)
    params = {
        name: random.randn(*shape).astype("f") / 30
        for name, shape in {"w": (512, 1024), "v": (1024, 512)}.items()
    }
    value = random.rand(8, 512).astype("f")

    def squares(params, x):
        return jax.numpy.mean((jax.nn.relu(x @ params["w"]) @ params["v"] - 1.0) ** 2)

    def step(params, state, x):
        loss, grads = jax.value_and_grad(squares)(params, x)
        updates, state = transformation.update(grads, state, params)
        return loss, optax.apply_updates(params, updates), state

    x = tf.placeholder(tf.float32, [None, 512])
    loss = tf.fleet.jax_op(squares)(tf.fleet.jax_variables(params), x)
    fetches = [tf.fleet.OptaxOptimizer(transformation).minimize(loss), loss]
    with initialized() as session:
        losses = [session.run(fetches, {x: value})[1] for _ in range(3)]
        (program,) = programs_of(session, fetches, [x])
    with jax.enable_x64(False):
        state, expected = transformation.init(params), []
        compiled = jax.jit(step).lower(params, state, value).compile()
        for _ in range(3):
            now, params, state = compiled(params, state, value)
            expected.append(now)
    assert program.call.as_text().count(" dot(") == compiled.as_text().count(" dot(") == 5
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


def test_slots_are_named_as_the_state_is_and_are_saved(tmp_path):
    w = tf.get_variable("w", initializer=START)
    optimizer = tf.fleet.OptaxOptimizer(optax.adamw(0.1))
    train = optimizer.minimize(tf.reduce_sum(w * w))
    assert optimizer.get_slot_names() == ["0/count", "0/mu", "0/nu"]
    assert [v.op.name for v in optimizer.variables()] == ["w/Optax/0/count", "w/Optax/0/mu", "w/Optax/0/nu"]
    with initialized() as session:
        session.run([train])
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
        session.run([train])
        after = session.run(w)
    with tf.Session() as session:
        tf.train.Saver().restore(session, path)
        assert session.run(optimizer.get_slot(w, "0/count")) == 1
        session.run(train)
        np.testing.assert_array_equal(session.run(w), after)


def test_the_state_starts_as_the_transformation_says():
    w = tf.get_variable("w", initializer=START)
    optimizer = tf.fleet.OptaxOptimizer(optax.adagrad(0.1, initial_accumulator_value=0.5))
    optimizer.minimize(tf.reduce_sum(w))
    with initialized() as session:
        np.testing.assert_array_equal(session.run(optimizer.variables()[0]), np.full((3, 2), 0.5))


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("name", ["adamw", "sgd", "rmsprop", "a chain"])
def test_rows_move_alone(name, resource):
    """The rows that a step touches are the whole variable to the transformation, and equal indices are added up."""
    transformation = TRANSFORMATIONS[name]()
    table = np.arange(12, dtype=np.float32).reshape(6, 2) / 6
    w = tf.get_variable("table", initializer=table, use_resource=resource)
    indices, values = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None, 2])
    train = tf.fleet.OptaxOptimizer(transformation).apply_gradients(
        [(tf.IndexedSlices(values, indices, [6, 2]), w)]
    )
    random = np.random.RandomState(2)
    with initialized() as session:
        # Each touches the same rows, so that the counts of the two agree.
        chosen = [4, 1, 4]
        grads = random.randn(3, 3, 2).astype(np.float32)
        summed = np.stack([grads[:, 1], grads[:, 0] + grads[:, 2]], 1)
        for value, expected in zip(grads, in_jax(transformation, table[[1, 4]], summed), strict=True):
            session.run(train, {indices: chosen, values: value})
            now = session.run(w)
            np.testing.assert_allclose(now[[1, 4]], expected, rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(now[[0, 2, 3, 5]], table[[0, 2, 3, 5]])


def test_slots_of_other_rows_stay_as_they_are_and_no_rows_change_nothing():
    w = tf.get_variable("table", initializer=np.ones((6, 2), np.float32))
    indices, values = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None, 2])
    optimizer = tf.fleet.OptaxOptimizer(optax.adamw(0.1))
    train = optimizer.apply_gradients([(tf.IndexedSlices(values, indices, [6, 2]), w)])
    with initialized() as session:
        session.run(train, {indices: [5], values: [[1, 1]]})
        before = session.run([w, optimizer.variables()])
        assert (before[1][1][:5] == 0).all() and (before[1][1][5] != 0).all()
        session.run(train, {indices: [], values: np.zeros((0, 2))})
        after = session.run([w, optimizer.variables()])
        jax.tree.map(np.testing.assert_array_equal, before, after)


def test_any_number_of_rows_shares_few_programs():
    w = tf.get_variable("table", initializer=np.zeros((64, 1), np.float32))
    indices = tf.placeholder(tf.int32, [None])
    values = tf.ones([tf.size(indices), 1])
    train = tf.fleet.OptaxOptimizer(optax.sgd(1.0)).apply_gradients(
        [(tf.IndexedSlices(values, indices, [64, 1]), w)]
    )
    expected = np.zeros(64)
    with initialized() as session:
        for count in (1, 2, 3, 5, 8, 13, 64):
            session.run(train, {indices: np.arange(count)})
            expected[:count] -= 1
            np.testing.assert_array_equal(session.run(w)[:, 0], expected)


# -- what is refused ---------------------------------------------------------------------------------


def test_what_is_no_transformation_is_refused():
    with pytest.raises(
        TypeError, match="transformation must be one of Optax's, such as optax.adamw\\(1e-3\\)"
    ):
        tf.fleet.OptaxOptimizer(0.1)


def test_a_transformation_of_several_variables_is_refused():
    chain = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.1))
    with pytest.raises(ValueError, match="looks at several variables at once.* tf.clip_by_global_norm"):
        tf.fleet.OptaxOptimizer(chain)


@pytest.mark.parametrize(
    "transformation",
    [lambda: optax.chain(optax.clip_by_block_rms(1.0), optax.sgd(0.1)), lambda: optax.lamb(0.1)],
)
def test_a_transformation_of_whole_variables_is_refused_for_rows(transformation):
    w = tf.get_variable("table", initializer=START)
    optimizer = tf.fleet.OptaxOptimizer(transformation())
    with pytest.raises(
        ValueError,
        match="The gradient of table has some rows alone.* optax.adamw, or make the gradient dense",
    ):
        optimizer.minimize(tf.reduce_sum(tf.gather(w, [0])))


def test_a_transformation_for_trees_of_other_names_is_refused():
    labels = optax.multi_transform({"a": optax.sgd(0.1)}, {"kernel": "a"})
    w = tf.get_variable("w", initializer=START)
    with pytest.raises(
        ValueError, match="(?s)cannot start for w:0 alone .* several optimizers, each with its var_list"
    ):
        tf.fleet.OptaxOptimizer(labels).minimize(tf.reduce_sum(w))


def test_a_variable_without_a_shape_is_refused():
    w = tf.Variable(tf.placeholder(tf.float32, [None]), validate_shape=False)
    with pytest.raises(ValueError, match="OptaxOptimizer needs the shape of Variable:0"):
        tf.fleet.OptaxOptimizer(optax.sgd(0.1)).minimize(tf.reduce_sum(w))
