"""Operations of the graph between Keras's layers, as layers of their own: what a model needs to know of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.engine.base_layer import Layer, call_graph
from tensorfleet_legacy.keras.engine.node import Call


class TensorFlowOpLayer(Layer):
    """An operation as a layer: applied to other tensors, it makes another operation like it.

    `constants` are those of its inputs that come from no layer, by their places.
    """

    def __init__(
        self,
        node_def: Any,
        constants: dict[int, Any] | None = None,
        name: str | None = None,
        trainable: bool = True,
        dtype: Any = None,
    ) -> None:
        self.node_def = _message(node_def) if isinstance(node_def, str) else node_def
        name = name or f"tf_op_layer_{self.node_def.name}"
        super().__init__(name=name, trainable=trainable, dtype=dtype)
        self.constants = {int(place): value for place, value in (constants or {}).items()}
        self.built = True

    def call(self, inputs: Any) -> Any:  # type: ignore[override]
        """The result of another operation of the same kind."""
        given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        for place, value in sorted(self.constants.items()):
            given.insert(place, value if isinstance(value, Tensor) else find("constant")(value))
        name = self.node_def.name.rpartition("/")[2]
        op = get_default_graph().create_op(self.node_def.op, given, name=name, attrs=self.node_def.attr)
        return op.outputs[0] if len(op.outputs) == 1 else list(op.outputs)

    def get_config(self) -> dict[str, Any]:
        from google.protobuf import json_format

        tensors = {p: v for p, v in self.constants.items() if isinstance(v, Tensor)}
        values = dict(zip(tensors, state.get_session().run(list(tensors.values())), strict=True))
        constants = {p: values.get(p, v) for p, v in self.constants.items()}
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": self.dtype,
            "node_def": json_format.MessageToJson(self.node_def),
            "constants": {p: np.asarray(v).tolist() for p, v in constants.items()},
        }


def _message(text: str) -> Any:
    from google.protobuf import json_format

    return json_format.Parse(json.dumps(json.loads(text)), find("NodeDef")())


def connect(tensors: list) -> None:
    """Makes layers of the operations between these tensors and the layers that they come from."""
    for tensor in tensors:
        if (
            isinstance(tensor, Tensor)
            and not hasattr(tensor, "_keras_history")
            and _comes_from_layers(tensor)
        ):
            _connect(tensor.op)


def _comes_from_layers(tensor: Tensor) -> bool:
    """Whether a layer gave one of the tensors that this one is computed from. What is found of each is kept."""
    graph: Any = tensor.graph
    result: dict[int, bool] = graph.__dict__.setdefault("_keras_descents", {})
    waiting: list[tuple[Operation, bool]] = [(tensor.op, False)]
    while waiting:
        op, seen = waiting.pop()
        if seen:
            result[id(op)] = any(hasattr(t, "_keras_history") or result.get(id(t.op)) for t in op.inputs)
        elif id(op) not in result:
            result[id(op)] = False  # until it is known: a loop leads back to itself
            waiting.append((op, True))
            waiting += [(t.op, False) for t in op.inputs if not hasattr(t, "_keras_history")]
    return result[id(tensor.op)]


def _connect(op: Operation) -> None:
    """Makes a layer of an operation, and before it of those that it needs."""
    order: list[Operation] = []
    waiting: list[tuple[Operation, bool]] = [(op, False)]
    seen: set[int] = set()
    while waiting:
        here, done = waiting.pop()
        if done:
            order.append(here)
        elif id(here) not in seen:
            seen.add(id(here))
            waiting.append((here, True))
            needed = [t for t in here.inputs if not hasattr(t, "_keras_history") and _comes_from_layers(t)]
            waiting += [(t.op, False) for t in needed]
    for here in order:
        known = [t for t in here.inputs if hasattr(t, "_keras_history")]
        others = {i: t for i, t in enumerate(here.inputs) if not hasattr(t, "_keras_history")}
        layer = TensorFlowOpLayer(here.node_def, others)
        outputs: Any = here.outputs[0] if len(here.outputs) == 1 else list(here.outputs)
        call = Call(layer, known[0] if len(known) == 1 else known, (), {}, outputs)
        layer._last, layer._graph = call, here.graph
        layer._calls.append(call)
        call_graph(outputs).append(call)
        for i, output in enumerate(here.outputs):
            output._keras_history = (call, i)  # type: ignore[attr-defined]
