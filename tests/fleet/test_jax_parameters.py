"""Parameters of models of JAX as variables: their names, their place, and the way back."""

import equinox as eqx
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from flax import nnx

import tensorfleet as tf
from tests.support.sessions import initialized

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


class Flax(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(nn.relu(nn.Dense(5)(x)))


def flax_model():
    model = Flax()
    return model.init(jax.random.key(0), X), model.apply


def haiku_model():
    model = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([5, 2])(x)))
    return model.init(jax.random.key(0), X), model.apply


def equinox_model():
    params, static = eqx.partition(eqx.nn.MLP(4, 2, 5, 1, key=jax.random.key(0)), eqx.is_array)
    return params, lambda params, x: jax.vmap(eqx.combine(params, static))(x)


def nnx_model():
    graph, params = nnx.split(nnx.Linear(4, 2, rngs=nnx.Rngs(0)))
    return params, lambda params, x: nnx.merge(graph, params)(x)


MODELS = {"Flax": flax_model, "Haiku": haiku_model, "Equinox": equinox_model, "Flax NNX": nnx_model}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_computes_and_trains_as_in_jax(name):
    with jax.enable_x64(False):
        params, apply = MODELS[name]()

    def loss(params, x):
        return jnp.mean(apply(params, x) ** 2)

    variables = tf.fleet.jax_variables(params)
    x = tf.placeholder(tf.float32, [None, 4])
    scores, cost = tf.fleet.jax_op(apply)(variables, x), tf.fleet.jax_op(loss)(variables, x)
    transformation = optax.sgd(0.1, momentum=0.9)  # not Adam, to which the sign of a gradient near 0 matters
    train = tf.fleet.OptaxOptimizer(transformation).minimize(cost)
    with jax.enable_x64(False):
        state, expected = transformation.init(params), params
        before = np.asarray(apply(params, X))
        for _ in range(3):
            updates, state = transformation.update(jax.grad(loss)(expected, X), state, expected)
            expected = optax.apply_updates(expected, updates)
    with initialized() as session:
        np.testing.assert_allclose(session.run(scores, {x: X}), before, rtol=1e-5, atol=1e-6)
        for _ in range(3):
            session.run(train, {x: X})
        reached = tf.fleet.jax_values(variables, session)
    assert jax.tree.structure(reached) == jax.tree.structure(params)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4), reached, expected)


def names(params):
    tf.fleet.jax_variables(params, "m")
    return [v.op.name for v in tf.global_variables()]


def test_variables_are_named_by_their_path():
    assert names(flax_model()[0]) == [
        "m/params/Dense_0/bias",
        "m/params/Dense_0/kernel",
        "m/params/Dense_1/bias",
        "m/params/Dense_1/kernel",
    ]


def test_names_of_haiku_and_equinox_are_readable():
    assert names(haiku_model()[0])[:2] == ["m/mlp/linear_0/b", "m/mlp/linear_0/w"]
    tf.reset_default_graph()
    assert names(equinox_model()[0])[:2] == ["m/layers/0/weight", "m/layers/0/bias"]
    tf.reset_default_graph()
    assert names(np.ones(2, np.float32)) == ["m/value"]


def test_whole_numbers_are_not_trained_and_a_tree_may_be_kept_from_training():
    tf.fleet.jax_variables({"w": np.ones(2, np.float32), "n": np.array(3)})
    assert [v.op.name for v in tf.trainable_variables()] == ["params/w"]
    tf.fleet.jax_variables({"w": np.ones(2, np.float32)}, "statistics", trainable=False)
    assert len(tf.trainable_variables()) == 1


def test_variables_are_where_the_device_says():
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        made = tf.fleet.jax_variables(flax_model()[0])
    assert {v.device for v in jax.tree.leaves(made)} == {"/job:ps/task:0", "/job:ps/task:1"}


def test_a_checkpoint_gives_the_tree_back(tmp_path):
    params = flax_model()[0]
    tf.fleet.jax_variables(params)
    with initialized() as session:
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    restored = tf.fleet.jax_from_checkpoint(path, jax.eval_shape(lambda: params))
    assert jax.tree.structure(restored) == jax.tree.structure(params)
    jax.tree.map(np.testing.assert_array_equal, restored, params)


def test_a_checkpoint_of_another_tree_is_refused(tmp_path):
    tf.fleet.jax_variables({"w": np.ones((2, 3), np.float32)})
    with initialized() as session:
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    with pytest.raises(
        ValueError, match="has no 'params/b', the parameter params\\['b'\\].* it has params/w. Pass a tree"
    ):
        tf.fleet.jax_from_checkpoint(path, {"b": np.ones(2)})
    with pytest.raises(
        ValueError, match="'params/w' in .* has shape \\[2, 3\\]; params\\['w'\\] has \\[3, 2\\]"
    ):
        tf.fleet.jax_from_checkpoint(path, {"w": np.ones((3, 2))})


def test_leaves_that_are_no_arrays_are_refused():
    with pytest.raises(TypeError, match="params\\['f'\\] is .* no array.* eqx.partition"):
        tf.fleet.jax_variables({"f": jnp.sin})
    with pytest.raises(TypeError, match="params\\['k'\\] is a typed key of JAX"):
        tf.fleet.jax_variables({"k": jax.random.key(0)})


def test_two_leaves_of_one_name_are_refused():
    with pytest.raises(ValueError, match="would both be the variable 'a/b'. Rename one"):
        tf.fleet.jax_variables({"a/b": np.ones(1), "a": {"b": np.ones(1)}})
