"""Helpers of TensorFlow's tests of Keras: models by their kinds, and a test that any layer passes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from absl.testing import parameterized

from tensorfleet.base.naming import find
from tensorfleet_legacy.testing.test_util import TestCase as GraphTestCase

_KINDS = ("functional", "subclass", "sequential")
_kind: list[str | None] = [None]


class TestCase(GraphTestCase, parameterized.TestCase):
    """A test that leaves no session and no names of layers behind."""

    def tearDown(self) -> None:
        find("keras.backend.clear_session")()
        super().tearDown()


# -- kinds of models ---------------------------------------------------------------------------------------


@contextmanager
def model_type_scope(value: str) -> Iterator[None]:
    """Models made inside are of a kind: "functional", "subclass" or "sequential"."""
    before, _kind[0] = _kind[0], value
    try:
        yield
    finally:
        _kind[0] = before


def get_model_type() -> str:
    """The kind of models to make."""
    if _kind[0] is None:
        raise ValueError(
            "Tried to call `get_model_type()` outside of a model type scope. Did you accidentally forget to use the "
            "`keras_parameterized.run_with_all_model_types` decorator?"
        )
    return _kind[0]


def _decorated(test_or_class: Any, wrap: Callable) -> Any:
    """A test, all cases of one, or all tests of a class, wrapped; None: what is given later."""
    if test_or_class is None:
        return lambda later: _decorated(later, wrap)
    if isinstance(test_or_class, type):
        for name, test in list(vars(test_or_class).items()):
            if name.startswith("test") and callable(test):
                setattr(test_or_class, name, wrap(test))
        return test_or_class
    if isinstance(test_or_class, Iterable):
        return [wrap(case) for case in test_or_class]
    return wrap(test_or_class)


def run_with_all_model_types(test_or_class: Any = None, exclude_models: Any = None) -> Any:
    """Has a test run once for each kind of models."""
    skipped = [exclude_models] if isinstance(exclude_models, str) else list(exclude_models or [])

    def wrap(test: Callable) -> Callable:
        @functools.wraps(test)
        def run(self: Any, *args: Any, **kwargs: Any) -> None:
            for kind in (kind for kind in _KINDS if kind not in skipped):
                with self.subTest(kind), model_type_scope(kind), find("Graph")().as_default():
                    test(self, *args, **kwargs)

        return run

    return _decorated(test_or_class, wrap)


def run_all_keras_modes(
    test_or_class: Any = None,
    config: Any = None,
    always_skip_v1: bool = False,
    always_skip_eager: bool = False,
    **kwargs: Any,
) -> Any:
    """Has a test run in a session of a graph, which is the one mode here."""

    def wrap(test: Callable) -> Callable:
        @functools.wraps(test)
        def run(self: Any, *args: Any, **kwargs: Any) -> None:
            if always_skip_v1:
                self.skipTest("The test needs eager execution, which TensorFleet does not have.")
            with find("Graph")().as_default():
                test(self, *args, **kwargs)

        return run

    return _decorated(test_or_class, wrap)


@contextmanager
def run_eagerly_scope(value: bool) -> Iterator[None]:
    """There is nothing but graphs."""
    yield


def should_run_eagerly() -> bool:
    """Never."""
    return False


def should_run_tf_function() -> bool:
    """Never."""
    return False


experimental_run_tf_function_scope = run_eagerly_scope

# -- small models ------------------------------------------------------------------------------------------


def _dense(num_hidden: int, num_classes: int, **first: Any) -> list:
    dense = find("keras.layers.Dense")
    last = dense(1, activation="sigmoid") if num_classes == 1 else dense(num_classes, activation="softmax")
    return [dense(num_hidden, activation="relu", **first), last]


def get_small_sequential_mlp(num_hidden: int, num_classes: int, input_dim: int | None = None) -> Any:
    """Two layers, one after the other."""
    first = {"input_dim": input_dim} if input_dim else {}
    return find("keras.Sequential")(_dense(num_hidden, num_classes, **first))


def get_small_functional_mlp(num_hidden: int, num_classes: int, input_dim: int) -> Any:
    """Two layers of tensors."""
    inputs = outputs = find("keras.Input")(shape=(input_dim,))
    for layer in _dense(num_hidden, num_classes):
        outputs = layer(outputs)
    return find("keras.Model")(inputs, outputs)


def get_small_subclass_mlp(num_hidden: int, num_classes: int) -> Any:
    """Two layers among the attributes of a model."""
    return _chained(_dense(num_hidden, num_classes))


def get_small_mlp(num_hidden: int, num_classes: int, input_dim: int) -> Any:
    """Two layers, as a model of the kind that is tested."""
    if get_model_type() == "subclass":
        return get_small_subclass_mlp(num_hidden, num_classes)
    make = get_small_sequential_mlp if get_model_type() == "sequential" else get_small_functional_mlp
    return make(num_hidden, num_classes, input_dim)


def _chained(layers: list, name: str | None = None) -> Any:
    class Chained(find("keras.Model")):  # type: ignore[misc]
        """Layers one after the other, by subclass."""

        def __init__(self) -> None:
            super().__init__(name=name)
            self.parts = list(layers)

        def call(self, inputs: Any, **kwargs: Any) -> Any:
            """Applies them."""
            for layer in self.parts:
                inputs = layer(inputs)
            return inputs

    return Chained()


def get_model_from_layers(
    layers: list,
    input_shape: Any = None,
    input_dtype: Any = None,
    name: str | None = None,
    input_ragged: bool | None = None,
    input_sparse: bool | None = None,
) -> Any:
    """Layers one after the other, as a model of the kind that is tested."""
    if get_model_type() == "subclass":
        return _chained(layers, name)
    if get_model_type() == "sequential":
        model = find("keras.Sequential")(name=name)
        if input_shape is not None:
            model.add(find("keras.layers.InputLayer")(input_shape=input_shape, dtype=input_dtype))
        for layer in layers:
            model.add(layer)
        return model
    inputs = outputs = find("keras.Input")(
        shape=input_shape, dtype=input_dtype, ragged=bool(input_ragged), sparse=bool(input_sparse)
    )
    for layer in layers:
        outputs = layer(outputs)
    return find("keras.Model")(inputs, outputs, name=name)


def get_expected_metric_variable_names(var_names: list[str], name_suffix: str = "") -> list[str]:
    """The names of the variables of metrics."""
    return [f"{name}{name_suffix}:0" for name in var_names]


def get_v2_optimizer(name: str, **kwargs: Any) -> Any:
    """An optimizer by its name."""
    known = {"adagrad": "Adagrad", "rmsprop": "RMSprop", "sgd": "SGD"}
    return find(f"keras.optimizers.{known.get(name, name.title())}")(**kwargs)


# -- any layer ---------------------------------------------------------------------------------------------


def layer_test(
    layer_cls: Any,
    kwargs: dict[str, Any] | None = None,
    input_shape: Any = None,
    input_dtype: Any = None,
    input_data: Any = None,
    expected_output: Any = None,
    expected_output_dtype: Any = None,
    expected_output_shape: Any = None,
    validate_training: bool = True,
    adapt_data: Any = None,
    custom_objects: dict[str, Any] | None = None,
) -> Any:
    """Checks a layer: its shapes and types, its configuration and weights, and training, in both kinds of models."""
    if input_data is None:
        assert input_shape, "Give the input's shape, or data."
        dims = [np.random.randint(1, 4) if d is None else d for d in input_shape]
        input_dtype = input_dtype or "float32"
        input_data = 10 * np.random.random(dims)
        if str(input_dtype).startswith("float"):
            input_data = input_data - 0.5
        input_data = input_data.astype(input_dtype)
    input_shape = input_data.shape if input_shape is None else input_shape
    input_dtype = input_dtype or input_data.dtype
    layer = layer_cls(**(kwargs or {}))
    weights = layer.get_weights()
    layer.set_weights(weights)
    x = find("keras.Input")(shape=tuple(input_shape[1:]), dtype=input_dtype)
    y = layer(x)
    wanted = expected_output_dtype or input_dtype
    if find("keras.backend.dtype")(y) != find("as_dtype")(wanted).name:
        raise AssertionError(f"{layer_cls.__name__} gives {y.dtype.name}, not {wanted}.")
    if expected_output_shape is not None:
        _same_shape(find("TensorShape")(expected_output_shape).as_list(), y.shape.as_list(), layer_cls)
    model = find("keras.Model")(x, y)
    actual = model.predict(input_data)
    computed = find("TensorShape")(layer.compute_output_shape(find("TensorShape")(input_shape))).as_list()
    _same_shape(computed, actual.shape, layer_cls)
    if expected_output is not None:
        np.testing.assert_allclose(actual, expected_output, rtol=1e-3, atol=1e-6)
    again = find("keras.Model").from_config(model.get_config(), custom_objects)
    if model.weights:
        again.set_weights(model.get_weights())
        np.testing.assert_allclose(again.predict(input_data), actual, rtol=1e-3, atol=1e-6)
    if validate_training:
        model.compile("rmsprop", "mse", weighted_metrics=["acc"])
        if model.trainable_weights:
            model.train_on_batch(input_data, actual)
    return _as_chain(layer, input_shape, input_dtype, input_data, custom_objects)


def _same_shape(expected: Any, actual: Any, layer_cls: Any) -> None:
    for wanted, got in zip(expected, actual, strict=True):
        if wanted is not None and got is not None and wanted != got:
            raise AssertionError(
                f"{layer_cls.__name__} gives the shape {tuple(actual)}, not {tuple(expected)}."
            )


def _as_chain(layer: Any, shape: Any, dtype: Any, data: Any, custom_objects: Any) -> Any:
    """The output of the layer in a chain, from its configuration."""
    again = type(layer).from_config(layer.get_config())
    chain = find("keras.Sequential")()
    chain.add(find("keras.Input")(shape=tuple(shape[1:]), dtype=dtype)._keras_input)
    chain.add(again)
    actual = chain.predict(data)
    copy = find("keras.Sequential").from_config(chain.get_config(), custom_objects)
    if chain.weights:
        copy.set_weights(chain.get_weights())
        np.testing.assert_allclose(copy.predict(data), actual, rtol=1e-3, atol=1e-6)
    return actual
