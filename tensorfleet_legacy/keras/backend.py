"""`tf.keras.backend`: the session, the learning phase, and what layers take for granted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import get_default_graph

VERSION = "2.2.4-tf"
_settings: dict[str, Any] = {"floatx": "float32", "epsilon": 1e-7, "image_data_format": "channels_last"}
_session: list[Any] = [None]
_manual = [False]


def floatx() -> str:
    """The type of variables by default."""
    return _settings["floatx"]


def set_floatx(value: str) -> None:
    """Sets the type of variables by default."""
    if value not in ("float16", "float32", "float64"):
        raise ValueError(f"Unknown floatx type: {value}")
    _settings["floatx"] = value


def epsilon() -> float:
    """A small number that keeps divisions and logarithms finite."""
    return _settings["epsilon"]


def set_epsilon(value: float) -> None:
    """Sets that number."""
    _settings["epsilon"] = value


def image_data_format() -> str:
    """Where the channels of images are by default."""
    return _settings["image_data_format"]


def set_image_data_format(data_format: str) -> None:
    """Sets where the channels of images are: "channels_last" or "channels_first"."""
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"Unknown data_format: {data_format}")
    _settings["image_data_format"] = data_format


def learning_phase() -> Any:
    """Whether layers train: what was set, or a tensor of the graph that is false unless it is fed."""
    graph: Any = get_default_graph()
    phase = graph.__dict__.get("_keras_learning_phase")
    if phase is None:
        with graph.as_default(), find("name_scope")(None), find("control_dependencies")(None):
            phase = find("placeholder_with_default")(False, [], name="keras_learning_phase")
        graph._keras_learning_phase = phase
    return phase


def decided(training: Any) -> Any:
    """The `training` argument of a layer; the learning phase if it has none."""
    return learning_phase() if training is None else training


def set_learning_phase(value: int) -> None:
    """Layers made from now on train (1), or do not (0)."""
    if value not in (0, 1):
        raise ValueError("Expected learning phase to be 0 or 1.")
    graph: Any = get_default_graph()
    graph._keras_learning_phase = int(value)


@contextmanager
def learning_phase_scope(value: int) -> Iterator[None]:
    """Layers made inside train (1), or do not (0)."""
    if value not in (0, 1):
        raise ValueError("Expected learning phase to be 0 or 1.")
    graph: Any = get_default_graph()
    before = graph.__dict__.get("_keras_learning_phase")
    graph._keras_learning_phase = int(value)
    try:
        yield
    finally:
        graph._keras_learning_phase = before


_depth = threading.local()


def is_calling() -> bool:
    """Whether a layer is computing: what it makes inside is its own."""
    return getattr(_depth, "value", 0) > 0


def training_around() -> Any:
    """The `training` argument of the enclosing layer's call; None if it has none."""
    return getattr(_depth, "training", None)


@contextmanager
def calling(training: Any = None) -> Iterator[None]:
    """A layer's computation, for training or not."""
    around = training_around()
    _depth.value, _depth.training = getattr(_depth, "value", 0) + 1, training
    try:
        yield
    finally:
        _depth.value, _depth.training = _depth.value - 1, around


def set_session(session: Any) -> None:
    """Sets the session that `get_session` gives."""
    _session[0] = session


def get_session(op_input_list: Any = ()) -> Any:
    """The default session, else the one that was set or made for the default graph.

    Variables that layers made since start in it, unless `manual_variable_initialization` says otherwise.
    """
    result = find("get_default_session")()
    if result is None:
        result = _session[0]
        if result is None or result.graph is not get_default_graph():
            workers = get_default_graph().__dict__.get("_of_workers")
            target, config = ("", None) if workers is None else workers._start_server()
            result = _session[0] = find("Session")(target, config=config)
    if not _manual[0]:
        with result.graph.as_default():
            _start(result)
    return result


def track(variable: Any) -> None:
    """Has `get_session` initialize a variable, once, unless it has a value then."""
    pending = variable.graph.__dict__.setdefault("_keras_pending", {})
    if not getattr(variable, "_keras_started", False):
        pending[id(variable)] = variable


def _start(session: Any) -> None:
    """Initializes variables of layers that have no value yet, each once."""
    pending = session.graph.__dict__.get("_keras_pending")
    if not pending:
        return
    variables = list(pending.values())
    known = session.run([_has_value(v) for v in variables])
    session.run([v.initializer for v, has in zip(variables, known, strict=True) if not has])
    for variable in variables:
        variable._keras_started = True
    pending.clear()


def _has_value(variable: Any) -> Any:
    """Whether a variable has a value; with what is in the graph already, as it may be final."""
    result = getattr(variable, "_is_initialized_op", None)
    return variable._is_initialized() if result is None else result


def manual_variable_initialization(value: bool) -> None:
    """Whether the user initializes variables, and `get_session` does not."""
    _manual[0] = bool(value)


def clear_session() -> None:
    """Forgets the session, the default graph, and the names of layers."""
    find("reset_default_graph")()
    _session[0] = None


def reset_uids() -> None:
    """Forgets the numbers of names in this graph."""
    get_default_graph().__dict__.pop("_keras_uids", None)


def get_uid(prefix: str = "") -> int:
    """The next number for a name in this graph, from 1 on."""
    counts = get_default_graph().__dict__.setdefault("_keras_uids", {})
    counts[prefix] = counts.get(prefix, 0) + 1
    return counts[prefix]


def unique_name(base: str) -> str:
    """`dense`, `dense_1`, ... in each graph."""
    number = get_uid(base)
    return base if number == 1 else f"{base}_{number - 1}"


def unique_object_name(
    name: str,
    name_uid_map: dict | None = None,
    avoid_names: Any = None,
    namespace: str = "",
    zero_based: bool = False,
) -> str:
    """A name that no other object of the graph has: `name_1`, `name_2`, ...; the first alone if `zero_based`."""
    counts = (
        get_default_graph().__dict__.setdefault("_keras_uids", {}) if name_uid_map is None else name_uid_map
    )
    while True:
        key: Any = (namespace, name) if namespace or name_uid_map is not None else name
        number = counts.get(key, 0) if zero_based else counts.get(key, 0) + 1
        counts[key] = number + 1 if zero_based else number
        result = name if zero_based and number == 0 else f"{name}_{number}"
        if result not in (avoid_names or ()):
            return result


def is_placeholder(x: Any) -> bool:
    """Whether a tensor is a placeholder."""
    return isinstance(x, Tensor) and x.op.type == "Placeholder"


def get_graph() -> Any:
    """The graph that layers are made in."""
    return get_default_graph()


def symbolic_learning_phase() -> Any:
    """The learning phase as a tensor."""
    return learning_phase()


def track_variable(v: Any) -> None:
    """Has `get_session` initialize a variable."""
    track(v)


def get_value(x: Any) -> Any:
    """The value of a variable or tensor, in the session."""
    return x.eval(session=get_session())


def set_value(x: Any, value: Any) -> None:
    """Gives a variable a value, in the session."""
    x.load(value, get_session())


def batch_set_value(tuples: Any) -> None:
    """Gives several variables values."""
    for variable, value in tuples:
        set_value(variable, value)


def is_keras_tensor(x: Any) -> bool:
    """Whether a tensor came from `Input` or from a layer."""
    if not isinstance(x, Tensor):
        raise ValueError(
            f"Unexpectedly found an instance of type `{type(x)}`. Expected a symbolic tensor instance."
        )
    return hasattr(x, "_keras_history")


def int_shape(x: Any) -> tuple | None:
    """The shape as a tuple, None where it is not known."""
    dims = x.shape
    return None if dims.ndims is None else tuple(dims.as_list())


def dot(x: Any, y: Any) -> Tensor:
    """The product of matrices; of the last axis of `x` and the second to last of `y` for higher ranks."""
    if x.shape.ndims is not None and x.shape.ndims > 2:
        return find("tensordot")(x, y, [[x.shape.ndims - 1], [max(y.shape.ndims - 2, 0)]])
    return find("matmul")(x, y)


def variable(value: Any, dtype: Any = None, name: str | None = None, constraint: Any = None) -> Any:
    """A variable with this first value."""
    result = find("Variable")(
        value, dtype=dtype or floatx(), name=name, constraint=constraint, use_resource=True
    )
    track(result)
    return result


def placeholder(
    shape: Any = None,
    ndim: int | None = None,
    dtype: Any = None,
    sparse: bool = False,
    name: str | None = None,
    ragged: bool = False,
) -> Any:
    """A placeholder of a shape, or of so many dimensions."""
    dims = shape if shape is not None else [None] * ndim if ndim else None
    if ragged:
        return find("ragged.placeholder")(dtype or floatx(), 1, list(dims or [])[2:], name=name)
    return find("sparse_placeholder" if sparse else "placeholder")(dtype or floatx(), dims, name=name)
