"""Starting from a checkpoint: variables whose initializers read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tensorfleet.api.train.checkpoint_reader import checkpoint_in, load_checkpoint
from tensorfleet.api.train.saveables import saveables_of
from tensorfleet.api.variables.getter import store_of
from tensorfleet.api.variables.partitioned import PartitionedVariable
from tensorfleet.api.variables.variable import Variable
from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply_list
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import device

if TYPE_CHECKING:
    from tensorfleet.api.train.types import PathLike


@export("train.init_from_checkpoint")
def init_from_checkpoint(
    ckpt_dir_or_file: PathLike, assignment_map: Mapping[str, Any] | Iterable[tuple[str, Any]]
) -> None:
    """Makes variables start with values from a checkpoint; call it before making the initializing operation.

    `assignment_map` maps names in the checkpoint to variables, lists of a variable's parts, or names of
    variables; or whole scopes to scopes: `{"old/": "new/"}`, `{"/": "new/"}`. A list of such pairs may
    give one name to several variables.
    """
    path = checkpoint_in(ckpt_dir_or_file)
    shapes = load_checkpoint(path).get_variable_to_shape_map()
    store = store_of()
    parts = {p.op.name for v in store.partitioned.values() for p in v}
    # A partitioned variable is matched by the name of the whole, never by its parts.
    known = {n: v for n, v in store.vars.items() if n not in parts} | dict(store.partitioned)
    pairs = assignment_map.items() if isinstance(assignment_map, Mapping) else assignment_map
    # Sorted, so that operations get the same names in every process of a cluster.
    for saved, target in sorted(pairs, key=lambda item: item[0]):
        variable = known.get(target) if isinstance(target, str) else target
        if variable is not None:
            _check(saved, variable, shapes, path)
            _start_from(variable, path, saved)
            continue
        for name, tensor in _in_scope(saved, target, known):
            if tensor not in shapes:
                inside = name[len(target.rstrip("/")) :].lstrip("/")
                raise ValueError(f"Tensor {tensor} ({inside} in {saved}) is not found in {path} checkpoint")
            _start_from(known[name], path, tensor)


def _check(
    saved: str,
    variable: Variable | PartitionedVariable | list[Variable] | tuple[Variable, ...],
    shapes: dict[str, list[int]],
    path: str,
) -> None:
    if saved not in shapes:
        raise ValueError(f"Tensor {saved} is not found in {path} checkpoint {shapes}")
    if isinstance(variable, (list, tuple)):
        _check_same_whole(variable)
        # A variable that is not partitioned is its own only part; then its shape can be compared.
        if not variable or variable[0]._save_slice_info is not None:
            return
        variable = variable[0]
    if not variable.get_shape().is_compatible_with(shapes[saved]):
        raise ValueError(
            f"Shape of variable {variable.name} ({variable.get_shape()}) doesn't match with shape of tensor {saved} "
            f"({shapes[saved]}) from checkpoint reader."
        )


def _check_same_whole(parts: list[Variable] | tuple[Variable, ...]) -> None:
    names = [p.op.name if p._save_slice_info is None else p._save_slice_info.full_name for p in parts]
    for name in names[1:]:
        if name != names[0]:
            raise ValueError(f"Slices must all be from the same tensor: {names[0]} != {name}")


def _in_scope(saved: str, target: str, known: dict[str, Any]) -> list[tuple[str, str]]:
    """The variables of a scope, each with its name in the checkpoint."""
    scope = target[: target.rindex("/")] if "/" in target else ""
    if not saved.endswith("/"):
        raise ValueError(
            f"Assignment map with scope only name {scope} should map to scope only {saved}. Should be 'scope/': "
            "'other_scope/'."
        )
    prefix = scope + "/" if scope else ""
    old = "" if saved == "/" else saved
    return [(name, old + name[len(prefix) :]) for name in sorted(known) if name.startswith(prefix)]


def _start_from(
    variable: Variable | PartitionedVariable | list[Variable] | tuple[Variable, ...], path: str, tensor: str
) -> None:
    if not isinstance(variable, (list, tuple, PartitionedVariable)):
        _initialize(variable, path, tensor, "")
        return
    for part in variable:
        info = part._save_slice_info
        _initialize(part, path, tensor, "" if info is None else info.spec)


def _initialize(variable: Variable, path: str, tensor: str, spec: str) -> None:
    kind = variable.dtype.base_dtype
    # Read by the CPU of the task that has the variable: the value need not travel.
    with device(variable.device), device("/cpu:0"):
        (value,) = apply_list(
            "RestoreV2", path, [tensor], [spec], dtypes=[kind], name="checkpoint_initializer"
        )
        value.set_shape(variable.get_shape())
    start_with(variable, value)


def start_with(variable: Variable, value: Tensor) -> None:
    """Makes a variable start with a value, whatever its initializer was."""
    assigned = saveables_of([variable])[0].restore([value], None)
    variable._initializer_op = assigned.op if isinstance(assigned, Tensor) else assigned
    variable._initial_value = value
