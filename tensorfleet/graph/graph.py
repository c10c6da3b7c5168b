"""`tf.Graph`: operations under unique names, collections, and the stacks that shape new operations."""

from __future__ import annotations

import re
import threading
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from tensorfleet.base import devices
from tensorfleet.base.dtypes import DType
from tensorfleet.graph import registry
from tensorfleet.graph.collections import Collections
from tensorfleet.graph.elements import check_inputs, find_element
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.infer import infer_shapes
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.source_lines import user_line
from tensorfleet.graph.stacks import ControlGroup, Stacks, replaced

if TYPE_CHECKING:
    from tensorfleet.base.devices import DeviceLike
    from tensorfleet.base.protos import GraphDef, OpDef, VersionDef
    from tensorfleet.base.types import DTypeLike
    from tensorfleet.graph.stacks import ColocationLines, DeviceFunction, DeviceLines

_VALID_OP_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")
_VALID_SCOPE_NAME = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")


class Graph(Collections):
    """A dataflow graph. New operations go to the default graph; `with graph.as_default():` changes it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._ops: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._lines: dict[
            Operation, tuple[DeviceLines, ColocationLines]
        ] = {}  # of the blocks around each that say where it is to be
        self._names_in_use: dict[str, int] = {}
        self._collections: dict[Hashable, list[Any]] = {}
        self._finalized = False
        self._edits = 0
        self._seed: int | None = None
        # Whether an operation without a seed of its own draws by it.
        self._seed_used = False
        self._unfeedable: set[Tensor] = set()
        self._unfetchable: set[Tensor | Operation] = set()
        self._functions: dict[str, Any] = {}
        self._function_names: set[str] = set()  # of those that are being made, too
        self._thread_local = threading.local()
        self._device_functions_outer: list[DeviceFunction | None] = []
        self._container = ""
        self._gradient_overrides: dict[str, str] = {}
        self._scoped_attrs: dict[str, Any] = {}
        self._kernel_labels: dict[str, str] = {}
        self._building_function = False
        self._versions: VersionDef | None = None
        self._function_gradients: dict[str, str] = {}

    # -- what is in it --

    @property
    def version(self) -> int:
        """Grows with every operation added."""
        return len(self._ops)

    @property
    def seed(self) -> int | None:
        """The graph-level random seed."""
        return self._seed

    @seed.setter
    def seed(self, seed: int | None) -> None:
        self._seed = seed

    @property
    def finalized(self) -> bool:
        """Whether the graph is closed to new operations."""
        return self._finalized

    def finalize(self) -> None:
        """Closes the graph: adding an operation raises RuntimeError from now on."""
        self._finalized = True

    @property
    def _c_graph(self) -> Graph:
        """The graph itself, for functions of TensorFlow's C library."""
        return self

    def _unsafe_unfinalize(self) -> None:
        self._finalized = False

    def _check_not_finalized(self) -> None:
        if self._finalized:
            raise RuntimeError(
                "Graph is finalized and cannot be modified. Build everything, initializers and savers "
                "included, before the session or supervisor finalizes the graph."
            )

    def _touched(self) -> None:
        self._edits += 1

    @property
    def building_function(self) -> bool:
        """Whether this graph is the body of a function."""
        return self._building_function

    @property
    def _nodes_by_id(self) -> dict[int, Operation]:
        """For scripts that look whether, or how, a graph has been built already."""
        return {op._id: op for op in self._ops}

    @property
    def _nodes_by_name(self) -> dict[str, Operation]:
        return dict(self._by_name)

    def get_operations(self) -> list[Operation]:
        """All operations, in the order they were made."""
        return list(self._ops)

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of that name; KeyError when there is none."""
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        op: Operation = self.as_graph_element(name, allow_tensor=False, allow_operation=True)
        return op

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor of that name (`op:0`); KeyError when there is none."""
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        tensor: Tensor = self.as_graph_element(name, allow_tensor=True, allow_operation=False)
        return tensor

    def as_graph_element(self, obj: object, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """The Tensor or Operation that `obj` names or stands for."""
        with self._lock:
            return find_element(self, obj, allow_tensor, allow_operation)

    def is_feedable(self, tensor: object) -> bool:
        """Whether the tensor may be fed."""
        return tensor not in self._unfeedable

    def is_fetchable(self, tensor_or_op: object) -> bool:
        """Whether the tensor or operation may be fetched."""
        if isinstance(tensor_or_op, Tensor):
            return tensor_or_op not in self._unfetchable and tensor_or_op.op not in self._unfetchable
        return tensor_or_op not in self._unfetchable

    def prevent_feeding(self, tensor: Tensor) -> None:
        """Forbids feeding the tensor."""
        self._unfeedable.add(tensor)

    def prevent_fetching(self, op: Tensor | Operation) -> None:
        """Forbids fetching the operation's results."""
        self._unfetchable.add(op)

    # -- adding an operation --

    def add_op(
        self,
        spec: registry.OpSpec,
        inputs: Sequence[Tensor],
        attrs: dict[str, Any],
        output_types: Sequence[DType],
        name: str,
        colocated: bool = True,
    ) -> Operation:
        """Adds an operation whose inputs and attributes are already checked; `name` ending in / is final."""
        self._check_not_finalized()
        if self._building_function:
            # A body may use tensors of the graph around it: each becomes an argument of the function.
            inputs = [t if t.graph is self else self.capture(t) for t in inputs]
        check_inputs(self, inputs, name)
        if isinstance(name, bytes):
            name = name.decode()
        with self._lock:
            full = name[:-1] if name.endswith("/") else self.unique_name(name)
            if not _VALID_OP_NAME.match(full):
                raise ValueError(f"'{full}' is not a valid node name")
            if full in self._by_name:
                raise ValueError(f"Duplicate node name in graph: '{full}'")
            state = self._local()
            waits = self._control_inputs_for(inputs)
            # Past the metaclass: Operation(...) itself is TensorFlow's constructor from a NodeDef.
            op: Operation = type.__call__(Operation, self, spec, full, inputs, waits, attrs, output_types)
            # Before the operation is registered: when its shapes contradict, the graph does not keep it.
            infer_shapes(op)
            self._apply_attribute_scopes(op, attrs)
            op._id = len(self._ops)
            op._control_flow_context = state.control_flow_context
            op._original_op = state.original_op
            self._ops.append(op)
            self._by_name[full] = op
            for t in op._inputs:
                t._consumers.append(op)
            for group in state.control_groups:
                group.members.add(op)
            # Device functions see the whole operation: replica_device_setter looks at its type and name.
            self._apply_device_functions(op)
            if colocated:
                self._apply_colocation(op, state)
            if state.device_lines or state.colocation_lines:
                self._lines[op] = state.device_lines, state.colocation_lines
        # Contexts may add operations themselves (a Switch for an outer tensor): this one is complete by now.
        context = op._control_flow_context
        for t in op._inputs:
            theirs = t._op._control_flow_context
            if theirs is not None and theirs is not context:
                theirs.check_user(op, t._op)
        if context is not None:
            context.AddOp(op)
        return op

    def capture(self, tensor: Tensor) -> Tensor:
        """The tensor in a function's body that stands for one of the graph around it."""
        raise ValueError(f"{tensor} is not an element of this graph.")

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Any],
        dtypes: Sequence[DTypeLike] | None = None,
        input_types: Sequence[DTypeLike] | None = None,
        name: str | None = None,
        attrs: dict[str, Any] | None = None,
        op_def: OpDef | None = None,
        compute_shapes: bool = True,
        compute_device: bool = True,
    ) -> Operation:
        """Adds an operation by its type. Attributes may be Python values or `AttrValue` protos."""
        from tensorfleet.graph.apply import add_raw
        from tensorfleet.graph.graphdef import attr_from_proto

        plain = {k: attr_from_proto(v) if hasattr(v, "WhichOneof") else v for k, v in (attrs or {}).items()}
        return add_raw(self, op_type, inputs, plain, name or op_type)

    def _create_op_internal(self, *args: Any, **kwargs: Any) -> Operation:
        return self.create_op(*args, **kwargs)

    def _local(self) -> Stacks:
        state: Stacks | None = getattr(self._thread_local, "stacks", None)
        if state is None:
            # The stacks belong to a thread: two threads can build one graph in different scopes.
            state = self._thread_local.stacks = Stacks(self._device_functions_outer)
        return state

    def _control_inputs_for(self, inputs: Sequence[Tensor]) -> list[Operation]:
        groups = self._local().control_groups
        if not groups:
            return []
        input_ops = {t._op for t in inputs}
        result: list[Operation] = []
        for group in groups:
            # An input made inside the block already waits for the block's dependencies.
            if group.members and not group.members.isdisjoint(input_ops):
                continue
            result.extend(c for c in group.inputs if c not in input_ops and c not in result)
        return result

    def _apply_device_functions(self, op: Any) -> None:
        """Keras asks with an object of its own on which device operations are placed now."""
        for function in reversed(self._local().devices):
            if function is None:
                break
            op._set_device(function(op))

    def _apply_attribute_scopes(self, op: Operation, attrs: dict[str, Any]) -> None:
        spec = op.spec
        if self._scoped_attrs:
            attrs.update(
                {k: v(op) if callable(v) else v for k, v in self._scoped_attrs.items() if v is not None}
            )
        if self._gradient_overrides and spec.name in self._gradient_overrides:
            attrs["_gradient_op_type"] = self._gradient_overrides[spec.name].encode()
        if self._kernel_labels and spec.name in self._kernel_labels:
            attrs["_kernel"] = self._kernel_labels[spec.name].encode()
        if self._container and spec.stateful and "container" in spec.attrs and not attrs.get("container"):
            attrs["container"] = self._container.encode()

    def _apply_colocation(self, op: Operation, state: Stacks) -> None:
        if not state.colocation:
            return
        groups: list[bytes] = []
        for other in state.colocation:
            groups += other.colocation_groups()
            if other._device:
                op._device = other._device
        own = [g for g in op._attrs.get("_class", ()) if g not in groups]
        op._attrs["_class"] = sorted({*groups, *own})

    # -- names --

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """A name in the current scope that no operation or scope has yet."""
        stack = self._local().name_scope
        if stack:
            name = f"{stack}/{name}"
        # Names are told apart without regard to case, so that they stay apart as file names too.
        key = name.lower()
        used = self._names_in_use
        count = used.get(key, 0)
        if mark_as_used:
            used[key] = count + 1
        if count:
            base = key
            while key in used:
                key = f"{base}_{count}"
                count += 1
            if mark_as_used:
                used[key] = 1
            name = f"{name}_{count - 1}"
        return name

    def get_name_scope(self) -> str:
        """The current name scope."""
        return self._local().name_scope

    @property
    def _name_stack(self) -> str:
        return self._local().name_scope

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Prefixes new names with a unique scope; a name ending in / re-enters that scope as it is."""
        if name:
            if isinstance(name, bytes):
                name = name.decode()
            valid = _VALID_SCOPE_NAME if self._local().name_scope else _VALID_OP_NAME
            if not valid.match(name):
                raise ValueError(f"'{name}' is not a valid scope name")
        state = self._local()
        old = state.name_scope
        if not name:
            new = ""
        elif name.endswith("/"):
            new = name[:-1]
        else:
            with self._lock:
                new = self.unique_name(name)
        state.name_scope = new
        try:
            yield new + "/" if name else ""
        finally:
            state.name_scope = old

    # -- stacks --

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Makes this the default graph inside the block."""
        from tensorfleet.graph.scopes import graph_stack

        stack = graph_stack()
        stack.append(self)
        try:
            yield self
        finally:
            if stack[-1] is not self:
                raise AssertionError("Nesting violated for the default stack of Graph objects")
            stack.pop()

    @contextmanager
    def device(self, device_name_or_function: DeviceLike | DeviceFunction) -> Iterator[None]:
        """Places new operations: a device string, a `DeviceSpec`, a function of the op, or None to reset."""
        state = self._local()
        if device_name_or_function is None or callable(device_name_or_function):
            function = device_name_or_function
        else:
            function = devices.merge_device(device_name_or_function)
        state.devices.append(function)
        lines = state.device_lines
        state.device_lines = (*lines, (device_name_or_function, *user_line()))
        try:
            yield
        finally:
            state.device_lines = lines
            if state.devices[-1] is not function:
                raise RuntimeError(
                    "Exiting device scope without proper scope nesting. Leave the inner one first."
                )
            state.devices.pop()

    @contextmanager
    def colocate_with(self, op: object, ignore_existing: bool = False) -> Iterator[None]:
        """Puts new operations on the device of `op`."""
        if op is None and not ignore_existing:
            raise ValueError("Trying to reset colocation (op is None) but ignore_existing is not True")
        if op is not None and not isinstance(op, Operation):
            element = self.as_graph_element(op)
            op = element.op if isinstance(element, Tensor) else element
        state = self._local()
        before = state.devices, state.colocation, state.device_lines, state.colocation_lines
        # The device of `op` rules: the devices named around this block do not apply inside it.
        state.devices, state.device_lines = [], ()
        state.colocation = [] if ignore_existing else list(state.colocation)
        state.colocation_lines = {} if ignore_existing else dict(state.colocation_lines)
        if isinstance(op, Operation):
            state.colocation.append(op)
            state.colocation_lines[op.name] = user_line()
        try:
            yield
        finally:
            state.devices, state.colocation, state.device_lines, state.colocation_lines = before

    @contextmanager
    def control_dependencies(self, control_inputs: Iterable[object] | None) -> Iterator[None]:
        """Makes new operations wait for these; None clears all dependencies of outer blocks."""
        state = self._local()
        if control_inputs is None:
            # None also leaves the branch or loop around, as in TensorFlow: initializers are built outside of it.
            saved = state.control_groups, state.control_flow_context
            state.control_groups, state.control_flow_context = [], None
            try:
                yield
            finally:
                state.control_groups, state.control_flow_context = saved
            return
        ops: list[Operation] = []
        for c in control_inputs:
            if isinstance(c, IndexedSlices) or (hasattr(c, "_handle") and hasattr(c, "op")):
                c = c.op  # waiting for a variable, or for a write to it, must not read it
            element = self.as_graph_element(c)
            ops.append(element.op if isinstance(element, Tensor) else element)
        group = ControlGroup(list(dict.fromkeys(ops)))
        state.control_groups = [*state.control_groups, group]
        try:
            yield
        finally:
            state.control_groups = state.control_groups[:-1]

    @contextmanager
    def container(self, container_name: str) -> Iterator[str]:
        """Keeps the state of new stateful operations in a named container."""
        with replaced(self, "_container", container_name):
            yield container_name

    @contextmanager
    def gradient_override_map(self, op_type_map: dict[str, str]) -> Iterator[None]:
        """Uses gradients registered under other names for new operations of these types."""
        _check_texts("op_type_map", op_type_map)
        with replaced(self, "_gradient_overrides", {**self._gradient_overrides, **op_type_map}):
            yield

    @contextmanager
    def _kernel_label_map(self, op_to_kernel_label_map: dict[str, str]) -> Iterator[None]:
        _check_texts("op_to_kernel_label_map", op_to_kernel_label_map)
        labels = {**self._kernel_labels, **op_to_kernel_label_map}
        with replaced(self, "_kernel_labels", {k: v for k, v in labels.items() if v}):
            yield

    @contextmanager
    def _attr_scope(self, attr_map: dict[str, Any]) -> Iterator[None]:
        from tensorfleet.graph.graphdef import attr_from_proto

        read = {k: attr_from_proto(v) if hasattr(v, "WhichOneof") else v for k, v in attr_map.items()}
        with replaced(self, "_scoped_attrs", {**self._scoped_attrs, **read}):
            yield

    def _original_op(self, op: Operation) -> AbstractContextManager[None]:
        return replaced(self._local(), "original_op", op)

    def _get_control_flow_context(self) -> Any:
        return self._local().control_flow_context

    def _set_control_flow_context(self, context: Any) -> None:
        self._local().control_flow_context = context

    @property
    def _variable_creator_stack(self) -> list[Any]:
        return self._local().creators

    @_variable_creator_stack.setter
    def _variable_creator_stack(self, creators: list[Any]) -> None:
        self._local().creators = creators

    def switch_to_thread_local(self) -> None:
        """Kept for programs that call it: the stacks of a graph are thread-local always."""

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> GraphDef:
        """The graph as a `GraphDef`; with `from_version`, only operations added since."""
        from tensorfleet.graph.graphdef import export_graph

        return export_graph(self, from_version, add_shapes)

    @property
    def graph_def_versions(self) -> VersionDef:
        """The `VersionDef` written into this graph's GraphDef."""
        from tensorfleet.graph.graphdef import graph_versions

        return graph_versions(self)


def _check_texts(name: str, given: object) -> None:
    if not (isinstance(given, dict) and all(isinstance(s, str) for pair in given.items() for s in pair)):
        raise TypeError(f"{name} must be a dictionary mapping strings to strings")
