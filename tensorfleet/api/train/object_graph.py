"""Objects that hold variables, as a graph, which object-based checkpoints store beside the values.

The objects are found from a root: variables, optimizers, layers, modules, checkpoints, and lists and
dictionaries of them. An object's name is the path of attributes that leads to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.api.train.saveables import is_trackable
from tensorfleet.api.variables.variable import Variable
from tensorfleet.base import packages

if TYPE_CHECKING:
    from tensorfleet.base.protos import TrackableObjectGraph

_VALUE = "VARIABLE_VALUE"


class Slot(NamedTuple):
    """A variable that an optimizer keeps for another one."""

    optimizer: int
    original: int
    name: str
    variable: Variable


class Objects:
    """All objects from a root on, numbered breadth first as TensorFlow does, slots last."""

    def __init__(self, root: object) -> None:
        self.nodes: list[Any] = [root]
        self.paths: list[str] = [""]
        self.children: list[list[tuple[str, int]]] = []
        self.slots: list[Slot] = []
        numbers = {id(root): 0}
        for node in self.nodes:  # the list grows as it is walked
            here = self.paths[len(self.children)]
            children = []
            for name, child in children_of(node):
                if id(child) not in numbers:
                    numbers[id(child)] = len(self.nodes)
                    self.nodes.append(child)
                    self.paths.append(f"{here}/{_escaped(name)}" if here else _escaped(name))
                children.append((name, numbers[id(child)]))
            self.children.append(children)
        for number, node in enumerate(list(self.nodes)):
            if hasattr(node, "get_slot_names"):
                self._add_slots(number, node, numbers)

    def _add_slots(self, number: int, optimizer: Any, numbers: dict[int, int]) -> None:
        for name in optimizer.get_slot_names():
            for original, variable in enumerate(self.nodes[: len(self.children)]):
                slot = optimizer.get_slot(variable, name) if isinstance(variable, Variable) else None
                if isinstance(slot, Variable) and id(slot) not in numbers:
                    self.slots.append(Slot(number, original, name, slot))
                    numbers[id(slot)] = len(self.nodes)
                    where = f"{self.paths[original]}/.OPTIMIZER_SLOT/{self.paths[number]}/{_escaped(name)}"
                    self.nodes.append(slot)
                    self.paths.append(where)
                    self.children.append([])

    def variables(self) -> dict[str, Any]:
        """The values to save, by their keys in the checkpoint."""
        values: dict[str, Any] = {}
        for number in range(len(self.nodes)):
            for name, value in self._values(number):
                values[self.key(number, name)] = value
        return values

    def key(self, number: int, name: str = _VALUE) -> str:
        """Where a value of an object is in the checkpoint."""
        path = self.paths[number]
        return f"{path}/.ATTRIBUTES/{_escaped(name)}" if path else f".ATTRIBUTES/{_escaped(name)}"

    def _values(self, number: int) -> Iterator[tuple[str, Any]]:
        """The values of an object itself that are saved."""
        node = self.nodes[number]
        if isinstance(node, Variable):
            yield _VALUE, node
        elif is_trackable(node):
            for name, factory in node._gather_saveables_for_checkpoint().items():
                yield name, factory(self.key(number, name)) if callable(factory) else factory

    def message(self) -> TrackableObjectGraph:
        """The graph as checkpoints store it."""
        from tensorfleet.base.protos import TrackableObjectGraph

        graph = TrackableObjectGraph()
        for number in range(len(self.nodes)):
            node = graph.nodes.add()
            node.has_checkpoint_values.value = True
            for name, child in self.children[number]:
                node.children.add(node_id=child, local_name=name)
            for name, value in self._values(number):
                full = value.op.name if isinstance(value, Variable) else getattr(value, "name", "")
                node.attributes.add(name=name, full_name=full, checkpoint_key=self.key(number, name))
        # Slots are the last nodes, in the order of `slots`.
        first = len(self.nodes) - len(self.slots)
        for i, slot in enumerate(self.slots):
            graph.nodes[slot.optimizer].slot_variables.add(
                original_variable_node_id=slot.original, slot_name=slot.name, slot_variable_node_id=first + i
            )
        return graph


def children_of(node: object) -> Iterator[tuple[str, Any]]:
    """The objects that an object holds, by name."""
    if isinstance(node, Variable):
        return
    if isinstance(node, (list, tuple)):
        yield from ((str(i), item) for i, item in enumerate(node) if is_held(item))
    elif isinstance(node, dict):
        yield from ((str(key), item) for key, item in node.items() if is_held(item))
    elif hasattr(node, "_checkpoint_dependencies"):
        yield from node._checkpoint_dependencies()
    else:
        yield from attributes(node)


def attributes(node: object) -> Iterator[tuple[str, Any]]:
    """The objects that an object holds: variables by their first names, and attributes, in the order they were set.

    Attributes that begin with an underscore count in a user's class. Our classes keep in them objects that they hold
    by another name; `_untracked` lists further ones.
    """
    weights = getattr(node, "_named_weights", {})
    held = {name: value for name, value in weights.items() if is_held(value)}
    untracked = getattr(type(node), "_untracked", ())
    # Attributes of TensorFleet's classes are not TensorFlow's: saved by name they would not match its
    # checkpoints.
    is_ours = type(node).__module__.partition(".")[0] in packages.NAMES
    for name, value in vars(node).items():
        if not (name.startswith("_") and is_ours) and name not in untracked and is_held(value):
            held[name] = value
    yield from held.items()


def is_held(value: object) -> bool:
    """Whether a checkpoint of objects saves a value, or something in it."""
    if isinstance(value, (list, tuple)):
        return any(is_held(item) for item in value)
    if isinstance(value, dict):
        return any(is_held(item) for item in value.values())
    return (
        isinstance(value, (Variable, Optimizer))
        or getattr(type(value), "_is_tracked", False)
        or is_trackable(value)
    )


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")
