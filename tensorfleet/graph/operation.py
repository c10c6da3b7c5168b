"""`tf.Operation` and `tf.Tensor`: the nodes of a graph and the values that flow between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tensorfleet.base import dtypes, errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import TensorShape, as_shape, difference
from tensorfleet.graph import registry, source_lines
from tensorfleet.graph.references import Reference

if TYPE_CHECKING:
    from tensorfleet.base.devices import DeviceLike
    from tensorfleet.base.protos import NodeDef, OpDef
    from tensorfleet.base.shapes import AnyShape
    from tensorfleet.base.types import Array, DTypeLike, FeedDict, TensorLike
    from tensorfleet.graph.graph import Graph
    from tensorfleet.graph.registry import GradientFunction
    from tensorfleet.graph.scopes import SessionLike


class _ByNode(type):
    """Makes `Operation(node_def, graph, ...)` add a node, whereas graphs make the objects themselves."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _of_node(*args, **kwargs) if cls is Operation else super().__call__(*args, **kwargs)


def _of_node(
    node_def: NodeDef,
    g: Graph,
    inputs: Sequence[Tensor] | None = None,
    output_types: object = None,
    control_inputs: Sequence[Any] | None = None,
    input_types: object = None,
    original_op: Operation | None = None,
    op_def: object = None,
) -> Operation:
    if not hasattr(node_def, "attr"):
        raise TypeError(f"node_def needs to be a NodeDef: {node_def}")
    if not hasattr(g, "add_op"):
        raise TypeError(f"g needs to be a Graph: {g}")
    # The node says everything about the operation; the blocks around the call add nothing.
    with g.device(None), g.control_dependencies(None), g.control_dependencies(control_inputs or []):
        result = g.create_op(node_def.op, inputs or [], name=f"{node_def.name}/", attrs=dict(node_def.attr))
    result._set_device(node_def.device)
    result._original_op = original_op
    return result


class Operation(metaclass=_ByNode):
    """A node of a graph. Made by `tf.*` functions, or of a `NodeDef`: `tf.Operation(node_def, graph, inputs)`."""

    __slots__ = (
        "__weakref__",
        "_attrs",
        "_constant",
        "_control_flow_context",
        "_control_inputs",
        "_device",
        "_gradient_function",
        "_id",
        "_inputs",
        "_name",
        "_original_op",
        "_outputs",
        "_stack",
        "graph",
        "spec",
        "type",
    )

    def __init__(
        self,
        graph: Graph,
        spec: registry.OpSpec,
        name: str,
        inputs: Sequence[Tensor],
        control_inputs: list[Operation],
        attrs: dict[str, Any],
        output_types: Sequence[DType],
    ) -> None:
        self.graph = graph
        self.spec = spec
        self.type = spec.name
        self._name = name
        self._inputs = tuple(inputs)
        self._control_inputs = control_inputs
        self._attrs = attrs
        self._device = ""
        self._original_op: Operation | None = None
        self._control_flow_context: Any = None
        self._constant: tuple[Array, ...] | None = None  # memo of graph.constant.constant_value, per output
        self._gradient_function: GradientFunction | None = None
        # Code and line pairs only: the text is read when an error or `traceback` shows it.
        self._stack = source_lines.user_stack()
        self._id = 0
        self._outputs = tuple(Tensor(self, i, t) for i, t in enumerate(output_types))

    @property
    def name(self) -> str:
        """The full name in the graph."""
        return self._name

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The data inputs."""
        return self._inputs

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors this operation gives."""
        return list(self._outputs)

    @property
    def _input_types(self) -> list[DType]:
        types: list[DType] = []
        for arg in self.spec.inputs:
            taken = self._inputs[len(types) : len(types) + arg_count(arg, self._attrs)]
            types += [t.dtype._as_ref if arg.is_ref else t.dtype.base_dtype for t in taken]
        return types

    @property
    def control_inputs(self) -> list[Operation]:
        """The operations that must run before this one."""
        return list(self._control_inputs)

    @property
    def device(self) -> str:
        """The device asked for, in whole or in part; empty when none."""
        return self._device

    @property
    def _id_value(self) -> int:
        return self._id

    @property
    def op_def(self) -> OpDef:
        """The `OpDef` proto of this operation's type."""
        from tensorfleet.graph.graphdef import op_def

        return op_def(self.spec)

    @property
    def node_def(self) -> NodeDef:
        """The `NodeDef` proto of this operation."""
        from tensorfleet.graph.graphdef import node_def

        return node_def(self)

    @property
    def traceback(self) -> list[tuple[str, int, str, str]]:
        """(file, line, function, text) of the calls that made this operation, outermost first."""
        return source_lines.traceback(self._stack)

    @property
    def traceback_with_start_lines(self) -> list[tuple[str, int, str, str, int]]:
        """Like `traceback`, each entry also with the first line of the function called."""
        starts = [code.co_firstlineno for code, _ in reversed(self._stack)]
        return [(*entry, start) for entry, start in zip(self.traceback, starts, strict=True)]

    @property
    def source_line(self) -> str:
        """`file:line` of the user's code that made this operation."""
        if not self._stack:
            return ""
        code, line = self._stack[0]
        return f"{code.co_filename}:{line}"

    @property
    def _device_assignments(self) -> list[source_lines.TraceableObject]:
        return source_lines.device_lines(self)

    @property
    def _colocation_dict(self) -> dict[str, source_lines.TraceableObject]:
        return source_lines.colocation_lines(self)

    def values(self) -> tuple[Tensor, ...]:
        """The outputs, as a tuple."""
        return self._outputs

    def colocation_groups(self) -> list[bytes]:
        """The `loc:@name` groups this operation belongs to; its own name when none."""
        # As in TensorFlow, an operation without a group is in a group of its own.
        groups = [g for g in self._attrs.get("_class", ()) if g.startswith(b"loc:@")]
        return groups or [b"loc:@" + self._name.encode()]

    def get_attr(self, name: str) -> Any:
        """The value of an attribute; shapes and tensors as protocol messages. ValueError when there is none."""
        if name not in self._attrs:
            raise ValueError(f"Operation '{self._name}' has no attr named '{name}'.")
        value = self._attrs[name]
        kind = self.spec.attrs[name].kind if name in self.spec.attrs else ""
        if kind.removeprefix("list(").startswith(("shape", "tensor", "func")):
            from tensorfleet.graph.graphdef import attr_message

            return attr_message(kind, value, self._attrs.get("dtype"))
        return value

    def run(self, feed_dict: FeedDict | None = None, session: SessionLike | None = None) -> None:
        """Runs this operation in `session`, or in the default session."""
        from tensorfleet.graph.scopes import session_for

        session_for(session, self.graph, "execute operation", "run").run(self, feed_dict)

    # -- changes made by the library, never after the graph is finalized --

    def _set_attr(self, name: str, value: Any) -> None:
        from tensorfleet.graph.graphdef import attr_from_proto

        self.graph._check_not_finalized()
        self._attrs[name] = attr_from_proto(value) if hasattr(value, "WhichOneof") else value
        self.graph._touched()

    def _set_device(self, device: DeviceLike) -> None:
        from tensorfleet.base.devices import canonical_name

        self._device = canonical_name(device)

    def _add_control_input(self, op: Operation) -> None:
        self._add_control_inputs([op])

    def _add_control_inputs(self, ops: Sequence[Operation]) -> None:
        self.graph._check_not_finalized()
        for op in ops:
            if op not in self._control_inputs:
                self._control_inputs.append(op)
        self.graph._touched()

    @property
    def _control_outputs(self) -> list[Operation]:
        return [op for op in self.graph._ops if self in op._control_inputs]

    def _remove_all_control_inputs(self) -> None:
        self.graph._check_not_finalized()
        self._control_inputs.clear()
        self.graph._touched()

    def _update_input(self, index: int, tensor: Tensor) -> None:
        self.graph._check_not_finalized()
        inputs = list(self._inputs)
        if index >= len(inputs):
            raise errors.OutOfRangeError(
                None,
                None,
                f"Cannot update edge. Input index [{index}] is greater than the number of total inputs [{len(inputs)}].",
            )
        if tensor.graph is not self.graph:
            raise ValueError(f"{tensor} must be from the same graph as {self!r}.")
        # What comes round a loop may have another shape than what went in.
        if self.type not in ("Merge", "RefMerge") and not tensor.shape.is_compatible_with(
            inputs[index].shape
        ):
            shapes = " and ".join(str(t.shape.as_list()).replace(" ", "") for t in (tensor, inputs[index]))
            message = f"Cannot update edge, incompatible shapes: {shapes}."
            raise errors.invalid(message)
        # An operation is listed once per input that it takes: with `op(x, x)` one entry must stay.
        inputs[index]._consumers.remove(self)
        inputs[index] = tensor
        tensor._consumers.append(self)
        self._inputs = tuple(inputs)
        self._forget_constant()
        self.graph._touched()

    def _forget_constant(self) -> None:
        """Drops the known values of this operation, and of operations that use them."""
        stack = [self]
        while stack:
            op = stack.pop()
            if op is self or op._constant is not None:  # nobody knows more than the inputs tell
                op._constant = None
                stack.extend(user for t in op._outputs for user in t._consumers if user is not self)

    def _get_control_flow_context(self) -> Any:
        return self._control_flow_context

    def _set_control_flow_context(self, context: Any) -> None:
        self._control_flow_context = context

    def input_list(self, position: int) -> tuple[int, int]:
        """Where the tensors of the `position`-th declared input start and end among `inputs`."""
        start = 0
        for i, arg in enumerate(self.spec.inputs):
            count = arg_count(arg, self._attrs)
            if i == position:
                return start, start + count
            start += count
        raise IndexError(position)

    def __str__(self) -> str:
        return str(self.node_def)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self._name}' type={self.type}>"


def arg_count(arg: registry.Arg, attrs: dict[str, Any]) -> int:
    """How many tensors one declared argument stands for."""
    if arg.number_attr:
        number: int = attrs[arg.number_attr]
        return number
    if arg.type_list_attr:
        return len(attrs[arg.type_list_attr])
    return 1


class Tensor:
    """A handle to one output of an operation. Operators and slicing build further operations."""

    __slots__ = ("__dict__", "__weakref__", "_consumers", "_dtype", "_op", "_shape", "_value_index")
    __array_priority__ = 100
    _why_symbolic = " in Graph execution"

    def __init__(self, op: Operation, value_index: int, dtype: DTypeLike) -> None:
        self._op = op
        self._value_index = value_index
        self._dtype: DType = dtypes.as_dtype(dtype)
        self._shape = _UNKNOWN
        self._consumers: list[Operation] = []

    @property
    def op(self) -> Operation:
        """The operation that gives this tensor."""
        return self._op

    @property
    def value_index(self) -> int:
        """Which of the operation's outputs this is."""
        return self._value_index

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._dtype

    @property
    def graph(self) -> Graph:
        """The graph this tensor belongs to."""
        return self._op.graph

    @property
    def name(self) -> str:
        """`op_name:index`."""
        return f"{self._op._name}:{self._value_index}"

    @property
    def device(self) -> str:
        """The device its operation asks for."""
        return self._op._device

    @property
    def shape(self) -> TensorShape:
        """The static shape: as much as is known while the graph is built."""
        return self._shape

    def _shape_as_list(self) -> list[Any] | None:
        return None if self.shape.ndims is None else self.shape.as_list()

    def _shape_tuple(self) -> tuple[Any, ...] | None:
        return None if self.shape.rank is None else tuple(self.shape.as_list())

    def get_shape(self) -> TensorShape:
        """The static shape: as much as is known while the graph is built."""
        return self._shape

    def set_shape(self, shape: AnyShape) -> None:
        """Narrows the static shape; ValueError when the two contradict."""
        given = as_shape(shape)
        if not self._shape.is_compatible_with(given):
            raise ValueError(difference(self._shape, given))
        self._shape = self._shape.merge_with(given)

    def consumers(self) -> list[Operation]:
        """The operations that take this tensor."""
        return list(self._consumers)

    def _as_tf_output(self) -> Tensor:
        """The tensor itself, for functions of TensorFlow's C library."""
        return self

    def _as_node_def_input(self) -> str:
        return self._op._name if self._value_index == 0 else f"{self._op._name}:{self._value_index}"

    def _rank(self) -> int | None:
        return self._shape.rank

    def eval(self, feed_dict: FeedDict | None = None, session: SessionLike | None = None) -> Any:
        """The value of this tensor, run in `session` or in the default session."""
        from tensorfleet.graph.scopes import session_for

        return session_for(session, self.graph, "evaluate tensor").run(self, feed_dict)

    def experimental_ref(self) -> Reference:
        """A key for this tensor in sets and dictionaries; its `deref()` gives the tensor back."""
        return Reference(self)

    def __bool__(self) -> bool:
        raise errors.OperatorNotAllowedInGraphError(
            f"using a `tf.Tensor` as a Python `bool` is not allowed{self._why_symbolic}. Use `if t is not None:` instead "
            "of `if t:` to test if a tensor is defined, and use TensorFlow ops such as tf.cond to execute subgraphs "
            "conditioned on the value of a tensor."
        )

    __nonzero__ = __bool__

    def __len__(self) -> int:
        raise TypeError(
            f"len is not well defined for symbolic Tensors. ({self.name}) Please call `x.shape` rather than "
            "`len(x)` for shape information."
        )

    def __iter__(self) -> Iterator[Any]:
        raise errors.OperatorNotAllowedInGraphError(
            f"iterating over `tf.Tensor` is not allowed{self._why_symbolic}: Tensor objects are only iterable when eager "
            "execution is enabled. Use tf.map_fn, or tf.unstack when its first dimension is known."
        )

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(
            f"Cannot convert a symbolic Tensor ({self.name}) to a numpy array. Use sess.run(tensor)."
        )

    def __copy__(self) -> Tensor:
        return self  # it stands for the same value

    if TYPE_CHECKING:  # set by tensorfleet.ops.operators and tensorfleet.ops.array.indexing

        def _binary(self, other: TensorLike) -> Tensor: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __div__ = __rdiv__ = _binary
        __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _binary
        __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __and__ = __rand__ = __or__ = __ror__ = _binary
        __xor__ = __rxor__ = __lt__ = __le__ = __gt__ = __ge__ = _binary

        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __getitem__(self, key: Any) -> Tensor: ...

    def __str__(self) -> str:
        shape = (
            f", shape={self._shape}" if self._shape._d is not None else ""
        )  # an unknown one is left out in 1.15
        device = f", device={self._op._device}" if self._op._device else ""
        return f'Tensor("{self.name}"{shape}, dtype={self._dtype.name}{device})'

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self._shape} dtype={self._dtype.name}>"


_UNKNOWN = TensorShape(None)
