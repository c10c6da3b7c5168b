"""Cells made of other cells: stacked, with dropout, with residuals, on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from tensorfleet.api.layers.rnn_cells import LSTMStateTuple, RNNCell, seed_of
from tensorfleet.api.layers.specs import Nested, ScopeLike
from tensorfleet.api.nn.normalization import dropout
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base import dtypes, nest
from tensorfleet.base.logging import warn
from tensorfleet.base.naming import export, find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import constant
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import device, name_scope
from tensorfleet.ops.array.concat import concat
from tensorfleet.ops.array.slicing import slice_
from tensorfleet.ops.math.binary import div
from tensorfleet.ops.math.unary import floor
from tensorfleet.ops.random.ops import random_uniform
from tensorfleet.ops.state.tensor_array import TensorArray


class CellLike(Protocol):
    """A cell as the functions for recurrent networks take it; it need not be an `RNNCell`."""

    @property
    def state_size(self) -> Any:
        """The sizes of the state: a number, a shape, or a structure of these."""

    @property
    def output_size(self) -> Any:
        """The size of the output."""

    def __call__(self, inputs: Nested, state: Nested, /) -> Any:
        """Gives the output and the new state."""


@export("python.ops.rnn_cell_impl.assert_like_rnncell")
def assert_like_rnncell(name: str, cell: CellLike) -> None:
    """TypeError unless something has the attributes of a cell."""
    conditions = {
        "'output_size' property is missing": hasattr(cell, "output_size"),
        "'state_size' property is missing": hasattr(cell, "state_size"),
        "either 'zero_state' or 'get_initial_state' method is required": hasattr(cell, "zero_state")
        or hasattr(cell, "get_initial_state"),
        "is not callable": callable(cell),
    }
    wrong = [text for text, ok in conditions.items() if not ok]
    if wrong:
        raise TypeError(f"The argument {name!r} ({cell}) is not an RNNCell: {', '.join(wrong)}.")


@export("nn.rnn_cell.MultiRNNCell", "contrib.rnn.MultiRNNCell")
class MultiRNNCell(RNNCell):
    """Cells on top of one another: the output of each is the input of the next."""

    def __init__(self, cells: Sequence[Any], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not nest.is_nested(cells):
            raise TypeError(f"cells must be a list or tuple, but saw: {cells}.")
        if len({id(cell) for cell in cells}) < len(cells):
            warn("At least two cells provided to MultiRNNCell are the same object and will share weights.")
        for i, cell in enumerate(cells):
            assert_like_rnncell(f"cells[{i}]", cell)
        self._cells = cells
        self._state_is_tuple = state_is_tuple
        if not state_is_tuple and any(nest.is_nested(c.state_size) for c in cells):
            sizes = [c.state_size for c in cells]
            raise ValueError(
                f"Some cells return tuples of states, but the flag state_is_tuple is not set.  State sizes are: {sizes}"
            )

    def _checkpoint_dependencies(self) -> Iterator[tuple[str, Any]]:
        yield from ((f"cell-{i}", cell) for i, cell in enumerate(self._cells))

    @property
    def state_size(self) -> Any:
        """The sizes of the cells' states, as a tuple or added up."""
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """The size of the last cell's output."""
        return self._cells[-1].output_size

    def zero_state(self, batch_size: Tensor | int, dtype: DTypeLike) -> Any:
        """A state of zeros for each cell."""
        with name_scope(type(self).__name__ + "ZeroState", values=[batch_size]):
            if self._state_is_tuple:
                return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)
            return super().zero_state(batch_size, dtype)

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables of all cells that are trained."""
        return (
            [w for cell in self._cells for w in getattr(cell, "trainable_weights", ())]
            if self.trainable
            else []
        )

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The variables of all cells that are not."""
        result = [w for cell in self._cells for w in getattr(cell, "non_trainable_weights", ())]
        if not self.trainable:
            result = [w for cell in self._cells for w in getattr(cell, "trainable_weights", ())] + result
        return result

    def call(self, inputs: Nested, state: Any) -> tuple[Any, Any]:  # type: ignore[override]
        """One step of each cell."""
        start = 0
        current, new_states = inputs, []
        for i, cell in enumerate(self._cells):
            with variable_scope(f"cell_{i}"):
                if self._state_is_tuple:
                    if not nest.is_nested(state):
                        raise ValueError(
                            f"Expected state to be a tuple of length {len(self.state_size)}, but received: {state}"
                        )
                    held = state[i]
                else:
                    held = slice_(state, [0, start], [-1, cell.state_size])
                    start += cell.state_size
                current, new = cell(current, held)
                new_states.append(new)
        return current, tuple(new_states) if self._state_is_tuple else concat(new_states, 1)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, by name."""
        return {"cells": self._cells, "state_is_tuple": self._state_is_tuple}


class Wrapper(RNNCell):
    """A cell around another."""

    def __init__(self, cell: CellLike, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        assert_like_rnncell("cell", cell)
        self.cell: Any = cell

    wrapped_cell = readonly("cell", "The cell inside.")
    state_size = readonly("cell.state_size", "That of the cell inside.")
    output_size = readonly("cell.output_size", "That of the cell inside.")

    def build(self, _: Any) -> None:
        """The cell inside builds itself."""
        self.built = True

    def zero_state(self, batch_size: Tensor | int, dtype: DTypeLike) -> Any:
        """The state of zeros of the cell inside."""
        with name_scope(type(self).__name__ + "ZeroState", values=[batch_size]):
            return self.cell.zero_state(batch_size, dtype)

    def __call__(
        self, inputs: Nested, state: Nested = None, scope: ScopeLike = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Runs one step of the wrapped cell: gives the output and the new state."""
        return self.call(inputs, state=state, scope=scope, **kwargs)

    def call(self, inputs: Nested, **kwargs: Any) -> Any:
        """One step of the cell inside, and the addition of this one."""
        return self._step(
            inputs, kwargs.pop("state"), self.cell, **{k: v for k, v in kwargs.items() if v is not None}
        )

    def _step(
        self, inputs: Nested, state: Nested, cell: Callable[..., tuple[Any, Any]], **kwargs: object
    ) -> tuple[Any, Any]:
        return cell(inputs, state, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """The wrapped cell's class name and configuration."""
        return {"cell": {"class_name": type(self.cell).__name__, "config": self.cell.get_config()}}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Wrapper:
        """A wrapper from what `get_config` gave."""
        cell = config["cell"]
        if isinstance(cell, dict):
            own = (custom_objects or {}).get(cell["class_name"])
            cell = (own or find(f"nn.rnn_cell.{cell['class_name']}")).from_config(cell["config"])
        return cls(**{**config, "cell": cell})


@export("nn.rnn_cell.DropoutWrapper", "contrib.rnn.DropoutWrapper")
class DropoutWrapper(Wrapper):
    """Dropout on a cell's inputs, outputs and state.

    The arguments are `(cell, input_keep_prob=1.0, output_keep_prob=1.0, state_keep_prob=1.0,
    variational_recurrent=False, input_size=None, dtype=None, seed=None, dropout_state_filter_visitor=None)`.

    With `variational_recurrent`, the same units are dropped in every step; `dtype` must be given then, and
    `input_size` when inputs are dropped.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._set(*args, **kwargs)

    def _set(
        self,
        cell: CellLike,
        input_keep_prob: TensorLike = 1.0,
        output_keep_prob: TensorLike = 1.0,
        state_keep_prob: TensorLike = 1.0,
        variational_recurrent: bool = False,
        input_size: Nested = None,
        dtype: DTypeLike | None = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(cell, dtype=dtype, **kwargs)
        if dropout_state_filter_visitor is not None and not callable(dropout_state_filter_visitor):
            raise TypeError("dropout_state_filter_visitor must be callable")
        self._visitor = dropout_state_filter_visitor or _drop_unless_cells
        self._keep = {
            "input": _probability("input_keep_prob", input_keep_prob),
            "output": _probability("output_keep_prob", output_keep_prob),
            "state": _probability("state_keep_prob", state_keep_prob),
        }
        self._seed = seed
        self._variational = variational_recurrent
        self._noise: dict[str, Any] = {}
        if variational_recurrent:
            if dtype is None:
                raise ValueError("When variational_recurrent=True, dtype must be provided")
            self._make_noise(input_size, dtype)

    def _make_noise(self, input_size: Nested, dtype: DTypeLike) -> None:
        """One mask per place, for all steps."""
        kind = dtypes.as_dtype(dtype)

        def make(size: Any, seed: int | None) -> Tensor:
            shape = [1, *TensorShape([size] if isinstance(size, int) else size).as_list()]
            return random_uniform(shape, seed=seed, dtype=kind)

        drops = {k: isinstance(p, Tensor) or p < 1.0 for k, p in self._keep.items()}
        if drops["input"]:
            if input_size is None:
                raise ValueError(
                    "When variational_recurrent=True and input_keep_prob < 1.0 or is unknown, input_size must be provided"
                )
            self._noise["input"] = self._each("input", input_size, make)
        if drops["state"]:
            self._noise["state"] = self._each("state", self.cell.state_size, make)
        if drops["output"]:
            self._noise["output"] = self._each("output", self.cell.output_size, make)

    def _each(self, salt: str, sizes: object, make: Callable[[Any, int | None], Tensor]) -> list[Tensor]:
        flat = [sizes] if isinstance(sizes, TensorShape) else nest.flatten(sizes)
        return [make(s, seed_of(self._seed, f"{salt}_{i}")) for i, s in enumerate(flat)]

    def _drop(
        self, values: Nested, salt: str, keep: Tensor | float, chosen: Callable[[Any], Any] | None = None
    ) -> Any:
        """Drops units of every tensor of a structure that is chosen."""
        flat = nest.flatten(values)
        picks = [True] * len(flat) if chosen is None else nest.flatten(_picked(values, chosen))
        dropped = []
        for i, (value, pick) in enumerate(zip(flat, picks, strict=True)):
            if not pick or isinstance(value, TensorArray):
                dropped.append(value)
            elif self._variational:
                dropped.append(_masked(value, self._noise[salt][i], keep))
            else:
                seed = seed_of(self._seed, f"{salt}_{i}")
                dropped.append(dropout(value, keep_prob=keep, seed=seed))
        return nest.pack_sequence_as(values, dropped)

    def _step(
        self, inputs: Nested, state: Nested, cell: Callable[..., tuple[Any, Any]], **kwargs: object
    ) -> tuple[Any, Any]:
        # A tensor may become less than one: then units are dropped in any case.
        drops = {k: not isinstance(p, float) or p < 1.0 for k, p in self._keep.items()}
        if drops["input"]:
            inputs = self._drop(inputs, "input", self._keep["input"])
        output, new_state = cell(inputs, state, **kwargs)
        if drops["state"]:
            new_state = self._drop(new_state, "state", self._keep["state"], self._visitor)
        if drops["output"]:
            output = self._drop(output, "output", self._keep["output"])
        return output, new_state

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, by name."""
        keep = {f"{k}_keep_prob": p for k, p in self._keep.items()}
        return {
            **super().get_config(),
            **keep,
            "variational_recurrent": self._variational,
            "seed": self._seed,
        }


def _drop_unless_cells(state: Nested) -> Any:
    """By default the memory of an LSTM is spared."""
    if isinstance(state, LSTMStateTuple):
        return LSTMStateTuple(c=False, h=True)
    return not isinstance(state, TensorArray)


def _picked(state: Any, visitor: Callable[[Any], Any]) -> Any:
    """The visitor's decision for every tensor of a state."""
    answer = visitor(state)
    if isinstance(answer, bool) and nest.is_nested(state):
        if not answer:
            return nest.map_structure(lambda _: False, state)
        return (
            nest.pack_sequence_as(list(state), [x for s in state for x in nest.flatten(_picked(s, visitor))])
            if all(not nest.is_nested(s) for s in state)
            else [_picked(s, visitor) for s in state]
        )
    return answer


def _probability(name: str, value: TensorLike) -> Tensor | float:
    tensor = to_tensor(value)
    known = constant_value(tensor)
    if known is None:
        return tensor
    if not 0.0 < float(known) <= 1.0:
        raise ValueError(f"Parameter {name} must be between 0 and 1: {float(known)}")
    return float(known)


def _masked(value: Tensor, noise: Tensor, keep: Tensor | float) -> Tensor:
    """The same units dropped in every step."""
    keep = keep if isinstance(keep, Tensor) else constant(keep, value.dtype)
    kept = floor(keep + noise)
    dropped = div(value, keep) * kept
    dropped.set_shape(value.shape)
    result: Tensor = dropped
    return result


@export("nn.rnn_cell.ResidualWrapper", "contrib.rnn.ResidualWrapper")
class ResidualWrapper(Wrapper):
    """`(cell, residual_fn=None)`: adds the cell's input to its output, or combines them by `residual_fn`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._set(*args, **kwargs)

    def _set(
        self, cell: CellLike, residual_fn: Callable[[Any, Any], Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(cell, **kwargs)
        self._residual_fn = residual_fn

    def _step(
        self, inputs: Nested, state: Nested, cell: Callable[..., tuple[Any, Any]], **kwargs: object
    ) -> tuple[Any, Any]:
        outputs, new_state = cell(inputs, state, **kwargs)
        if self._residual_fn is not None:
            return self._residual_fn(inputs, outputs), new_state
        nest.assert_same_structure(inputs, outputs)
        for i, o in zip(nest.flatten(inputs), nest.flatten(outputs), strict=True):
            i.shape.assert_is_compatible_with(o.shape)
        return nest.map_structure(lambda i, o: i + o, inputs, outputs), new_state

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, by name."""
        return {**super().get_config(), "residual_fn": self._residual_fn}


@export("nn.rnn_cell.DeviceWrapper", "contrib.rnn.DeviceWrapper")
class DeviceWrapper(Wrapper):
    """`(cell, device)`: runs a cell on a device."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._set(*args, **kwargs)

    def _set(self, cell: CellLike, device: str | Callable[[Operation], str] | None, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._device = device

    def zero_state(self, batch_size: Tensor | int, dtype: DTypeLike) -> Any:
        """The state of zeros of the cell inside, on the device."""
        with device(self._device):
            return super().zero_state(batch_size, dtype)

    def _step(
        self, inputs: Nested, state: Nested, cell: Callable[..., tuple[Any, Any]], **kwargs: object
    ) -> tuple[Any, Any]:
        with device(self._device):
            return cell(inputs, state, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, by name."""
        return {**super().get_config(), "device": self._device}
