"""How a served model gets its input: `tf.estimator.export.ServingInputReceiver` and functions that make one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor

_ALONE = {
    "feature": "feature",
    "label": "label",
    "receiver_tensor": "input",
    "receiver_tensors_alternative": "input",
}


def _named(tensors: Any, what: str, ints: bool = False) -> dict:
    """Tensors by name; one by itself gets a name."""
    if tensors is None:
        raise ValueError(f"{what}s must be defined.")
    tensors = tensors if isinstance(tensors, dict) else {_ALONE[what]: tensors}
    for name, tensor in tensors.items():
        if not isinstance(name, (str, int) if ints else str):
            raise ValueError(f"{what} keys must be strings{' or ints' if ints else ''}: {name}.")
        _need_tensor(tensor, f"{what} {name}")
    return tensors


def _need_tensor(value: Any, what: str) -> None:
    if not isinstance(value, (Tensor, SparseTensor)):
        raise ValueError(f"{what} must be a Tensor or SparseTensor.")


class _Receiver(NamedTuple):
    features: Any
    receiver_tensors: dict
    receiver_tensors_alternatives: dict | None


class ServingInputReceiver(_Receiver):
    """The tensors to feed to a served model (`receiver_tensors`), and the model function's `features`.

    A feature by itself reaches the model function as `{"feature": tensor}`. Each of `receiver_tensors_alternatives`
    makes further signatures, for inputs fed at another point.
    """

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> ServingInputReceiver:
        return super().__new__(cls, *_checked(features, receiver_tensors, receiver_tensors_alternatives))


class TensorServingInputReceiver(_Receiver):
    """The same for a model function that takes one tensor rather than a dictionary."""

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> TensorServingInputReceiver:
        if features is None:
            raise ValueError("features must be defined.")
        _need_tensor(features, "feature")
        _, receivers, others = _checked(features, receiver_tensors, receiver_tensors_alternatives)
        return super().__new__(cls, features, receivers, others)


def _checked(features: Any, receivers: Any, others: Any) -> tuple:
    if others is not None:
        if not isinstance(others, dict):
            raise ValueError(f"receiver_tensors_alternatives must be a dict: {others}.")
        others = {name: _named(t, "receiver_tensors_alternative") for name, t in others.items()}
    return _named(features, "feature", ints=True), _named(receivers, "receiver_tensor"), others


class _Supervised(NamedTuple):
    features: Any
    labels: Any
    receiver_tensors: dict


class SupervisedInputReceiver(_Supervised):
    """The tensors to feed to a model that is exported for training or evaluation."""

    def __new__(cls, features: Any, labels: Any, receiver_tensors: Any) -> SupervisedInputReceiver:
        _named(features, "feature", ints=True)
        _named(labels, "label", ints=True)
        return super().__new__(cls, features, labels, _named(receiver_tensors, "receiver_tensor"))


def build_parsing_serving_input_receiver_fn(
    feature_spec: dict, default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function for `export_saved_model`: the model is fed serialized `tf.Example`s, parsed by `feature_spec`."""

    def serving_input_receiver_fn() -> ServingInputReceiver:
        examples = find("placeholder")(dtypes.string, [default_batch_size], name="input_example_tensor")
        return ServingInputReceiver(find("io.parse_example")(examples, feature_spec), {"examples": examples})

    return serving_input_receiver_fn


def build_raw_serving_input_receiver_fn(
    features: dict, default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function for `export_saved_model`: the model is fed tensors like `features`, by their names."""

    def serving_input_receiver_fn() -> ServingInputReceiver:
        fed = {name: _placeholder(tensor, default_batch_size) for name, tensor in features.items()}
        return ServingInputReceiver(fed, fed)

    return serving_input_receiver_fn


def _placeholder(like: Any, batch_size: int | None) -> Tensor:
    return find("placeholder")(like.dtype, [batch_size, *like.shape.as_list()[1:]], name=like.op.name)


def build_raw_supervised_input_receiver_fn(
    features: Any, labels: Any, default_batch_size: int | None = None
) -> Callable[[], SupervisedInputReceiver]:
    """A function for `experimental_export_all_saved_models`: tensors like these are fed for training or evaluation."""
    names = [
        list(given) if isinstance(given, dict) else [_ALONE[what]]
        for given, what in ((features, "receiver_tensor"), (labels, "label"))
    ]
    both = set(names[0]) & set(names[1])
    if both:
        raise ValueError(f"Features and labels must have distinct keys. Found overlapping keys: {both}")

    def supervised_input_receiver_fn() -> SupervisedInputReceiver:
        fed: dict = {}
        results = []
        for given, keys in zip((features, labels), names, strict=True):
            tensors = given if isinstance(given, dict) else {keys[0]: given}
            placeholders = {
                name: _placeholder(tensor, default_batch_size) for name, tensor in tensors.items()
            }
            fed.update(placeholders)
            results.append(placeholders if isinstance(given, dict) else placeholders[keys[0]])
        return SupervisedInputReceiver(results[0], results[1], fed)

    return supervised_input_receiver_fn
