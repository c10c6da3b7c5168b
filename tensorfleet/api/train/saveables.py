"""Objects that a `Saver` saves: variables, parts of variables, and objects with saveables of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeGuard

from tensorfleet.api.variables.partitioned import PartitionedVariable
from tensorfleet.api.variables.variable import ResourceVariable, Variable
from tensorfleet.base.dtypes import DType
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import colocate_with, device

VARIABLE_VALUE_KEY = "VARIABLE_VALUE"


class SaveSpec:
    """One tensor to save: its value, which part of a whole it is, and its name in the checkpoint."""

    def __init__(
        self, tensor: Any, slice_spec: str, name: str, dtype: DType | None = None, device: str | None = None
    ) -> None:
        if callable(tensor) and (dtype is None or device is None):
            raise AssertionError("When `tensor` is a function, `dtype` and `device` must be given.")
        self._tensor = tensor
        self.slice_spec = slice_spec
        self.name = name
        self.dtype = (tensor.dtype if dtype is None else dtype).base_dtype
        self.device = tensor.device if device is None else device

    @property
    def tensor(self) -> Tensor:
        """The value; it may have been given as a function that makes it."""
        value: Tensor = self._tensor() if callable(self._tensor) else self._tensor
        return value


class SaveableObject:
    """Something that can be saved. Subclasses give `specs`, and override `restore`."""

    def __init__(self, op: Any, specs: list[SaveSpec], name: str) -> None:
        self.op = op
        self.specs = specs
        self.name = name

    @property
    def device(self) -> str:
        """The device of the first tensor."""
        return self.specs[0].device

    def restore(
        self, restored_tensors: list[Tensor], restored_shapes: list[Any] | None
    ) -> Operation | Tensor:
        """The operation that takes the restored tensors (reshaped to `restored_shapes`, if given)."""
        raise ValueError("Calling an abstract method.")


class RefSaveable(SaveableObject):
    """A variable by reference, or a part of one."""

    def __init__(self, variable: Variable | Tensor, ref: Tensor, slice_spec: str, name: str) -> None:
        # A part is saved through its read, the whole through the reference: TensorFlow's graphs do so.
        value = variable if slice_spec else ref
        tensor = value._AsTensor() if isinstance(value, Variable) else value
        super().__init__(ref, [SaveSpec(tensor, slice_spec, name, device=ref.device)], name)

    def restore(self, restored_tensors: list[Tensor], restored_shapes: list[Any] | None) -> Tensor:
        """Assigns the restored value."""
        value = _reshaped(restored_tensors[0], restored_shapes)
        whole = restored_shapes is None and self.op.shape.is_fully_defined()
        with colocate_with(self.op.op):
            return apply("Assign", self.op, value, validate_shape=whole)


class ResourceSaveable(SaveableObject):
    """A variable by handle, or a part of one."""

    def __init__(self, variable: ResourceVariable, slice_spec: str, name: str) -> None:
        self._variable = variable
        tensor = self._read_to_cpu if slice_spec else variable._graph_element
        super().__init__(
            variable.handle, [SaveSpec(tensor, slice_spec, name, variable.dtype, variable.device)], name
        )

    def _read_to_cpu(self) -> Tensor:
        """A part's value, on the CPU of its task: files are written there."""
        with device(self._variable.device):
            value = self._variable.read_value()
            with device("/device:CPU:0"):
                return apply("Identity", value)

    def restore(self, restored_tensors: list[Tensor], restored_shapes: list[Any] | None) -> Operation:
        """Assigns the restored value."""
        value = _reshaped(restored_tensors[0], restored_shapes)
        with device(self._variable.device):
            value = apply("Identity", value)
            self._variable.shape.assert_is_compatible_with(value.shape)
            return apply_op("AssignVariableOp", self._variable.handle, value)


def _reshaped(value: Tensor, shapes: list[Any] | None) -> Tensor:
    return value if shapes is None else apply("Reshape", value, shapes[0])


def by_name(var_list: Any, convert_variable_to_tensor: bool = True) -> dict[str, Any]:
    """Variables as a dictionary from their names in the checkpoint; the parts of a whole as a list."""
    if isinstance(var_list, dict):
        return dict(var_list)
    if not isinstance(var_list, (list, tuple, set, frozenset)):
        raise TypeError(f"Variables to save should be passed in a dict or a list. Got {var_list}")
    named: dict[str, Any] = {}
    items = sorted(var_list, key=lambda v: v.name) if isinstance(var_list, (set, frozenset)) else var_list
    for item in items:
        info = item._save_slice_info if isinstance(item, Variable) else None
        if info is not None:
            parts = named.setdefault(info.full_name, [])
            if not isinstance(parts, list):
                raise ValueError(f"Mixing slices and non-slices with the same name: {info.full_name}")
            parts.append(item)
            continue
        if is_trackable(item):
            parts = [f() if callable(f) else f for f in item._gather_saveables_for_checkpoint().values()]
            named.update(by_name(parts))
            continue
        name = _name_of(item)
        if name in named and not isinstance(item, SaveableObject):  # of tables of one name the last is saved
            raise ValueError(f"At least two variables have the same name: {name}")
        named[name] = list(item) if isinstance(item, PartitionedVariable) else item
    return named


class Trackable(Protocol):
    """An object that is no variable and has saveables of its own."""

    def _gather_saveables_for_checkpoint(self) -> Mapping[str, Any]:
        """Saveables by name, or functions that make one from its name in the checkpoint."""


def is_trackable(item: object) -> TypeGuard[Trackable]:
    """Whether an object has saveables of its own, and is no variable."""
    return hasattr(item, "_gather_saveables_for_checkpoint") and not isinstance(item, Variable)


def _name_of(item: object) -> str:
    if isinstance(item, (SaveableObject, PartitionedVariable)):
        return item.name
    if isinstance(item, Variable):
        return item.op.name
    return _need_variable(item).op.name


def _need_variable(item: object) -> Tensor:
    """The tensor of a reference variable, as old programs pass it; TypeError for anything else."""
    if not (isinstance(item, Tensor) and item.op.spec.variable and item.dtype._is_ref_dtype):
        raise TypeError(f"Variable to save is not a Variable: {item}")
    return item


def saveables_of(var_list: Any) -> list[SaveableObject]:
    """The saveables of these variables, sorted by name in the checkpoint."""
    named = by_name(var_list)
    for name in named:
        if not isinstance(name, str):
            raise TypeError(
                "names_to_saveables must be a dict mapping string names to trackable operations. Name is not a "
                f"string: {name}"
            )
    saveables: list[SaveableObject] = []
    seen: set[Operation] = set()
    for name in sorted(named):
        for saveable in _saveables(named[name], name):
            op = (
                saveable.op if isinstance(saveable.op, Operation) else getattr(saveable.op, "op", saveable.op)
            )
            if op in seen:
                raise ValueError(f"The same saveable will be restored with two names: {saveable.name}")
            seen.add(op)
            saveables.append(saveable)
    return saveables


def _saveables(item: object, name: str) -> list[SaveableObject]:
    if isinstance(item, SaveableObject):
        return [item]
    if isinstance(item, (list, tuple, PartitionedVariable)):
        return _parts(list(item), name)
    if is_trackable(item):
        saveables = []
        for part, factory in item._gather_saveables_for_checkpoint().items():
            full = name if part == VARIABLE_VALUE_KEY else f"{name}_{part}"
            saveables += _saveables(factory(full) if callable(factory) else factory, full)
        return saveables
    return [_saveable(item, "", name)]


def _parts(parts: list[Any], name: str) -> list[SaveableObject]:
    wholes = set()
    for part in parts:
        if not isinstance(part, Variable):
            raise ValueError(f"Slices must all be Variables: {part}")
        if part._save_slice_info is None:
            raise ValueError(f"Slices must all be slices: {part}")
        wholes.add(part._save_slice_info.full_name)
    if len(wholes) > 1:
        raise ValueError(f"Slices must all be from the same tensor: {' != '.join(sorted(wholes))}")
    return [_saveable(part, part._save_slice_info.spec, name) for part in parts]


def _saveable(variable: Any, slice_spec: str, name: str) -> SaveableObject:
    if hasattr(variable, "_copies"):
        saveable: SaveableObject = variable._saveable(name)
        return saveable
    if isinstance(variable, ResourceVariable):
        return ResourceSaveable(variable, slice_spec, name)
    if isinstance(variable, Variable):
        return RefSaveable(variable, variable._variable, slice_spec, name)
    ref = _need_variable(variable)
    return RefSaveable(ref, ref, slice_spec, name)
