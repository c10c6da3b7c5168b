"""Values of which each replica has its own, and how they are put together and taken apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorfleet.api.distribute import context
from tensorfleet.base.properties import readonly
from tensorfleet.base.types import DTypeLike
from tensorfleet.graph.convert import register_tensor_conversion_function, to_tensor
from tensorfleet.graph.operation import Tensor


class DistributedValues:
    """One value for each replica."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = tuple(values)

    values: tuple[Any, ...] = readonly("_values", "All of them, in the order of the replicas.")

    @property
    def devices(self) -> tuple[str, ...]:
        """Where they are."""
        return tuple(getattr(v, "device", "") for v in self._values)

    def get(self) -> Any:
        """The value that belongs to where we are."""
        here = context.current()
        index = here.updating if here.replica is None else here.replica._replica_index
        if index is None:
            raise ValueError(
                "The value of a replica is read inside the replica: use experimental_local_results."
            )
        return self._values[index]

    def __repr__(self) -> str:
        lines = ",\n".join(f"  {i}: {v!r}" for i, v in enumerate(self._values))
        return f"{type(self).__name__}:{{\n{lines}\n}}"


class PerReplica(DistributedValues):
    """Values that may differ."""


class Mirrored(DistributedValues):
    """The same value, on the device of each replica."""

    def get(self) -> Any:
        """The value of the replica, or of the device that is being updated, in this context."""
        here = context.current()
        index = here.updating if here.replica is None else here.replica._replica_index
        return self._values[index or 0]

    _here = property(get)
    op = readonly("_here.op", "The operation of the part that belongs to where we are.")
    device = readonly("_here.device", "The device of that part.")
    dtype = readonly("_here.dtype", "The type of the elements.")
    shape = readonly("_here.shape", "The static shape.")
    name = readonly("_here.name", "The name of that part.")
    graph = readonly("_here.graph", "The graph it belongs to.")

    def _as_graph_element(self) -> Any:
        part = self._here
        convert = getattr(part, "_as_graph_element", None)
        return part if convert is None else convert()


def _mirrored_to_tensor(
    value: Mirrored, dtype: DTypeLike | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    return to_tensor(value._here, dtype)


register_tensor_conversion_function(Mirrored, _mirrored_to_tensor)


def is_distributed(value: object) -> bool:
    """Whether a value has one part per replica: one of the above, or a variable with copies."""
    return isinstance(value, DistributedValues) or hasattr(value, "_copies")


def parts_of(value: object) -> tuple[Any, ...]:
    """The parts of a value: one per replica, or the value itself."""
    if isinstance(value, DistributedValues):
        return value.values
    return getattr(value, "_copies", (value,))


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """`function` of each leaf of a structure."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_mapped(function, v) for v in value])
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(function, v) for v in value)
    if isinstance(value, dict):
        return type(value)((k, _mapped(function, v)) for k, v in value.items())
    return function(value)


def select(index: int, structure: object) -> Any:
    """A structure as replica number `index` sees it."""
    return _mapped(lambda v: v.values[index] if isinstance(v, DistributedValues) else v, structure)


def select_copy(index: int, structure: object) -> Any:
    """A structure as the update of a variable's copy number `index` sees it."""

    def chosen(v: Any) -> Any:
        if isinstance(v, DistributedValues):
            return v.values[index]
        copies = getattr(v, "_copies", ())
        return copies[index] if len(copies) > index else v

    return _mapped(chosen, structure)


def regroup(values: Sequence[Any], wrap: type[DistributedValues] = PerReplica) -> Any:
    """The results of all replicas as one structure, whose leaves are distributed unless they are the same object."""
    first = values[0]
    if len(values) == 1:
        return first
    if isinstance(first, (list, tuple, dict)) and not all(
        type(v) is type(first) and len(v) == len(first) for v in values
    ):
        raise ValueError(f"The replicas gave results of different structures: {list(values)}.")
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*[regroup(part, wrap) for part in zip(*values, strict=True)])
    if isinstance(first, (list, tuple)):
        return type(first)(regroup(part, wrap) for part in zip(*values, strict=True))
    if isinstance(first, dict):
        if any(set(v) != set(first) for v in values):
            raise ValueError(f"The replicas gave results with different keys: {[sorted(v) for v in values]}.")
        return type(first)((k, regroup([v[k] for v in values], wrap)) for k in first)
    if all(v is first for v in values):
        return first
    # Copies of one variable, in order, are that variable.
    whole = getattr(first, "_copy_of", None)
    if whole is not None and all(v is copy for v, copy in zip(values, whole._copies, strict=False)):
        return whole
    return wrap(values)
