"""Building one operation from a call: convert the inputs, infer the attributes, add it to the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.graph import registry
from tensorfleet.graph.attributes import clean_attr, complete_attrs
from tensorfleet.graph.checking import MAX_CONSTANT_BYTES, MAX_OUTPUTS
from tensorfleet.graph.convert import make_array, to_tensor
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor, arg_count
from tensorfleet.graph.registry import Arg, Attr, OpSpec
from tensorfleet.graph.scopes import get_default_graph, graph_of
from tensorfleet.graph.tensor_proto import stored_bytes

if TYPE_CHECKING:
    from tensorfleet.base.types import DTypeLike, ShapeLike, TensorLike


def apply(op_type: str, *inputs: TensorLike, name: str | None = None, **attrs: Any) -> Tensor:
    """Adds an operation that has one output to the default graph and returns that output.

    Type and number attributes are inferred from the inputs; the rest come by keyword or by default.
    """
    (output,) = apply_op(op_type, *inputs, name=name, **attrs)._outputs
    return output


def apply_list(op_type: str, *inputs: TensorLike, name: str | None = None, **attrs: Any) -> list[Tensor]:
    """Like `apply`, for an op with several outputs, or whose one output is a list: returns the tensors."""
    return list(apply_op(op_type, *inputs, name=name, **attrs)._outputs)


def apply_any(op_type: str, *inputs: TensorLike, name: str | None = None, **attrs: Any) -> Any:
    """Like `apply`, for an op whose outputs are known only by its name.

    One output comes back as a Tensor, several as a list, a list output as a list, none as the Operation.
    """
    op = apply_op(op_type, *inputs, name=name, **attrs)
    declared = op.spec.outputs
    if not declared:
        return op
    return _grouped_outputs(op) if len(declared) > 1 else _grouped_outputs(op)[0]


def _grouped_outputs(op: Operation) -> list[Any]:
    """One entry per declared output: a tensor, or a list of tensors."""
    result: list[Any] = []
    start = 0
    for arg in op.spec.outputs:
        if arg.number_attr or arg.type_list_attr:
            count = arg_count(arg, op._attrs)
            result.append(list(op._outputs[start : start + count]))
            start += count
        else:
            result.append(op._outputs[start])
            start += 1
    return result


def apply_op(op_type: str, *inputs: TensorLike, name: str | None = None, **attrs: Any) -> Operation:
    """Like `apply`, for any op: returns the Operation."""
    spec = registry.get(op_type)
    if len(inputs) != len(spec.inputs):
        raise TypeError(f"{op_type} takes {len(spec.inputs)} inputs, got {len(inputs)}.")
    # The inputs decide: with tensors of another graph the operation is added there, not to the default graph.
    graph = graph_of(inputs) if inputs else get_default_graph()
    if graph is not get_default_graph():
        with graph.as_default():
            return _build(graph, spec, inputs, attrs, name or op_type)
    return _build(graph, spec, inputs, attrs, name or op_type)


def _build(graph: Graph, spec: OpSpec, inputs: Sequence[Any], attrs: dict[str, Any], name: str) -> Operation:
    state = graph._local()
    outer = state.name_scope
    # A name with a slash at its end is a scope that is open already: it was made unique when it was opened.
    scope = name[:-1] if name.endswith("/") else graph.unique_name(name)
    state.name_scope = scope  # constants made for this op's arguments are named inside it
    try:
        known: dict[str, Any] = {}
        for key, value in attrs.items():
            if key not in spec.attrs and not key.startswith("_"):
                raise TypeError(f"{spec.name} got an unexpected attribute '{key}'.")
            if value is not None:
                known[key] = clean_attr(spec, spec.attrs[key], value) if key in spec.attrs else value
            # None for a required shape means unknown; for any other attribute it means the default.
            elif key in spec.attrs and spec.attrs[key] == Attr(key, "shape", registry.REQUIRED):
                known[key] = TensorShape(None)
        flat: list[Tensor] = []
        held: list[Operation] = []
        # In the order of the signature: the first input of a type attribute decides it, and later ones must agree.
        for arg, value in zip(spec.inputs, inputs, strict=True):
            tensors = _convert_input(spec, arg, value, known)
            flat += tensors
            if arg.is_ref:
                held += [t._op for t in tensors]
        full = complete_attrs(spec, known)
        with ExitStack() as places:
            for other in held:  # what changes a variable is placed with it, whatever device is named around
                places.enter_context(graph.colocate_with(other))
            return graph.add_op(spec, flat, full, output_types(spec, full), scope + "/")
    finally:
        state.name_scope = outer


def add_raw(
    graph: Graph, op_type: str, inputs: Sequence[Tensor], attrs: dict[str, Any], name: str
) -> Operation:
    """Adds an operation whose inputs are tensors and whose attributes are all given (GraphDef import)."""
    spec = registry.get(op_type)
    known = {k: clean_attr(spec, spec.attrs[k], v) if k in spec.attrs else v for k, v in attrs.items()}
    tensors = list(inputs)
    position = 0
    for arg in spec.inputs:
        _infer_from_tensors(arg, tensors[position:], known)
        position += _arg_length(arg, known)
    missing = [k for k, a in spec.attrs.items() if k not in known and a.default is registry.REQUIRED]
    if missing:
        raise ValueError(
            f"NodeDef missing attr '{missing[0]}' from Op<name={spec.name}>; NodeDef: '{name.rstrip('/')}'"
        )
    full = complete_attrs(spec, known)
    _check_inputs(spec, tensors, full, name.rstrip("/"))
    return graph.add_op(spec, tensors, full, output_types(spec, full), name)


def _check_inputs(spec: OpSpec, tensors: Sequence[Tensor], attrs: dict[str, Any], name: str) -> None:
    """Raises ValueError when a node's inputs do not fit its op."""
    expected: list[tuple[DType, bool]] = []
    for arg in spec.inputs:
        if arg.type_list_attr:
            expected += [(dtype, arg.is_ref) for dtype in attrs[arg.type_list_attr]]
            continue
        dtype: DType = arg.dtype or attrs[arg.type_attr]
        # The count comes from a message and may be huge. One more than there are is enough to be refused.
        expected += [(dtype, arg.is_ref)] * min(_arg_length(arg, attrs), len(tensors) + 1)
    if len(expected) != len(tensors):
        raise ValueError(
            f"NodeDef expected inputs '{', '.join(_told(*e) for e in expected[:16])}' do not match {len(tensors)} inputs "
            f"specified; Op<name={spec.name}>; NodeDef: '{name}'"
        )
    for i, ((dtype, is_ref), tensor) in enumerate(zip(expected, tensors, strict=True)):
        if tensor.dtype.base_dtype != dtype.base_dtype or (is_ref and not tensor.dtype._is_ref_dtype):
            passed = _told(tensor.dtype.base_dtype, tensor.dtype._is_ref_dtype)
            raise ValueError(
                f"Input {i} of node {name} was passed {passed} from {tensor.name} incompatible with expected "
                f"{_told(dtype, is_ref)}."
            )


def _told(dtype: DType, is_ref: bool) -> str:
    """The name that messages about nodes have for a type."""
    name = {"float32": "float", "float64": "double", "float16": "half"}.get(dtype.name, dtype.name)
    return f"{name}_ref" if is_ref else name


def _infer_from_tensors(arg: Arg, rest: Sequence[Tensor], known: dict[str, Any]) -> None:
    if arg.type_attr and arg.type_attr not in known and rest:
        known[arg.type_attr] = rest[0].dtype.base_dtype


def _arg_length(arg: Arg, attrs: dict[str, Any]) -> int:
    """How many tensors an argument of a node stands for, whose attributes may be wrong."""
    named = arg.number_attr or arg.type_list_attr
    if not named:
        return 1
    if named not in attrs:
        raise ValueError(f"NodeDef missing attr '{named}'")
    result: int = attrs[named] if arg.number_attr else len(attrs[named])
    if not 0 <= result <= MAX_OUTPUTS:
        raise ValueError(
            f"Attr '{named}' is {result}: a node has between 0 and {MAX_OUTPUTS} inputs or outputs."
        )
    return result


def _convert_input(spec: OpSpec, arg: Arg, value: TensorLike, known: dict[str, Any]) -> list[Tensor]:
    if arg.number_attr:
        return _convert_list(spec, arg, value, known)
    if arg.type_list_attr:
        return _convert_types(spec, arg, value, known)
    tensor = _convert_one(spec, arg, value, known, arg.name)
    if arg.is_ref and not tensor.dtype._is_ref_dtype:
        raise TypeError(
            f"'{spec.name}' Op requires that input '{arg.name}' be a mutable tensor (e.g.: a tf.Variable)"
        )
    # RefSelect copies here: an update of its result would be lost without a word.
    if arg.is_ref and spec.updates and tensor._op.type == "RefSelect":
        raise TypeError(
            f"'{spec.name}' Op cannot change {tensor.name}: what ref_select gives is for reading. Update the variables "
            "themselves, in tf.case."
        )
    return [tensor]


def _convert_types(spec: OpSpec, arg: Arg, values: Any, known: dict[str, Any]) -> list[Tensor]:
    """The tensors of a list in which each has a type of its own."""
    if not hasattr(values, "__len__"):
        raise TypeError(f"Expected list for '{arg.name}' argument to '{spec.name}' Op, not {values!r}.")
    types = known.get(arg.type_list_attr)
    if types is not None and len(types) != len(values):
        raise _other_types(spec, arg, values, types)
    tensors = []
    for i, v in enumerate(values):
        try:
            tensors.append(to_tensor(v, types[i] if types else None, name=f"{arg.name}_{i}"))
        except (TypeError, ValueError) as e:
            if types is not None:
                raise _other_types(spec, arg, values, types) from e
            raise TypeError(
                f"Tensors in list passed to '{arg.name}' of '{spec.name}' Op have types [{_types_of(values)}] that are "
                f"invalid. Tensors: {values} ({e})"
            ) from e
        _check_allowed(spec, arg, tensors[-1].dtype.base_dtype, arg.type_list_attr)
    known.setdefault(arg.type_list_attr, [t.dtype.base_dtype for t in tensors])
    return tensors


def _other_types(spec: OpSpec, arg: Arg, values: Any, told: Sequence[DType]) -> TypeError:
    first = next((a.name for a in spec.inputs if a.type_list_attr == arg.type_list_attr), arg.name)
    return TypeError(
        f"Input '{arg.name}' of '{spec.name}' Op has type list of {_types_of(values)} that does not match type list "
        f"{', '.join(t.name for t in told)} of argument '{first}'."
    )


def _types_of(values: Iterable[Any]) -> str:
    """The types that values would have as tensors, for a message."""
    names = []
    for v in values:
        try:
            dtype = v.dtype if hasattr(v, "dtype") else dtypes.as_dtype(make_array(v).dtype)
            names.append(dtypes.as_dtype(dtype).base_dtype.name)
        except (TypeError, ValueError):
            names.append("<NOT CONVERTIBLE TO TENSOR>")
    return ", ".join(names)


def _convert_one(spec: OpSpec, arg: Arg, value: TensorLike, known: dict[str, Any], name: str) -> Tensor:
    if type(value) is Tensor:
        tensor = value
    else:
        wanted, preferred = arg.dtype, None
        if arg.type_attr:
            wanted = known.get(arg.type_attr)
            attr = spec.attrs.get(arg.type_attr)
            if wanted is None and attr is not None and attr.default is not registry.REQUIRED:
                # A default type is a preference: [1, 2] becomes int32, but a tensor keeps its type.
                preferred = attr.default if _fits(value, attr.default) else None
        try:
            tensor = to_tensor(value, wanted, name, preferred, arg.is_ref)
        except (TypeError, ValueError) as e:
            if wanted is None:
                raise
            raise _type_conflict(spec, arg, value, wanted, e) from e
    got = tensor.dtype.base_dtype
    if arg.dtype is not None:
        if got != arg.dtype:
            raise TypeError(
                f"Input '{arg.name}' of '{spec.name}' Op has type {got.name} that does not match expected type "
                f"of {arg.dtype.name}."
            )
        return tensor
    wanted = known.get(arg.type_attr)
    if wanted is None:
        _check_allowed(spec, arg, got)
        known[arg.type_attr] = got
    elif got != wanted:
        raise TypeError(
            f"Input '{arg.name}' of '{spec.name}' Op has type {got.name} that does not match type "
            f"{wanted.name} of argument '{_argument_of(spec, arg)}'."
        )
    return tensor


def _fits(value: object, kind: object) -> bool:
    """Whether Python numbers are within a type; shapes of more elements than int32 has are written as lists."""
    if kind != dtypes.int32 or not isinstance(value, (int, list, tuple)):
        return True
    try:
        largest = np.max(np.abs(np.array(value, np.int64)), initial=0)
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        return True  # not plain numbers: who converts them knows what they are, or what is wrong
    return bool(largest <= dtypes.int32.max)


def _type_conflict(spec: OpSpec, arg: Arg, value: TensorLike, wanted: DType, error: Exception) -> Exception:
    # TensorFlow has three messages for a wrong type, by the kind of the value; users search for them.
    plain = isinstance(value, (list, tuple, int, float, bool, str, bytes, np.ndarray, np.generic))
    if plain and not isinstance(error, TypeError):
        return error
    if isinstance(error, TypeError) and not hasattr(value, "dtype"):
        plain = True
    if plain:
        return TypeError(
            f"Expected {wanted.name} passed to parameter '{arg.name}' of op '{spec.name}', got {value!r} of type "
            f"'{type(value).__name__}' instead. Error: {error}"
        )
    try:
        got = to_tensor(value).dtype.base_dtype
    except (TypeError, ValueError):
        return error
    if not arg.type_attr:
        return TypeError(
            f"Input '{arg.name}' of '{spec.name}' Op has type {got.name} that does not match expected type of "
            f"{wanted.name}."
        )
    return TypeError(
        f"Input '{arg.name}' of '{spec.name}' Op has type {got.name} that does not match type "
        f"{wanted.name} of argument '{_argument_of(spec, arg)}'."
    )


def _argument_of(spec: OpSpec, arg: Arg) -> str:
    return next((a.name for a in spec.inputs if a.type_attr == arg.type_attr), arg.name)


def _check_allowed(spec: OpSpec, arg: Arg, got: DType, name: str = "") -> None:
    attr = spec.attrs.get(name or arg.type_attr)
    if attr is not None and attr.allowed is not None and got not in attr.allowed:
        allowed = ", ".join(sorted(d.name for d in attr.allowed if isinstance(d, DType)))
        raise TypeError(
            f"Value passed to parameter '{arg.name}' has DataType {got.name} not in list of allowed values: "
            f"{allowed}"
        )


def _convert_list(spec: OpSpec, arg: Arg, values: object, known: dict[str, Any]) -> list[Tensor]:
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"Expected list for '{arg.name}' argument to '{spec.name}' Op, not {values!r}.")
    # The first tensor of a list decides the type, so that numbers before it are converted to that type.
    if arg.type_attr and arg.type_attr not in known:
        for v in values:
            if isinstance(v, Tensor) or hasattr(v, "_as_graph_element"):
                known[arg.type_attr] = v.dtype.base_dtype
                _check_allowed(spec, arg, v.dtype.base_dtype)
                break
    try:
        tensors = [_convert_one(spec, arg, v, known, f"{arg.name}_{i}") for i, v in enumerate(values)]
    except TypeError as e:
        if "does not match type" not in str(e):
            raise
        raise TypeError(
            f"Tensors in list passed to '{arg.name}' of '{spec.name}' Op have types [{_types_of(values)}] that don't all "
            "match."
        ) from e
    least = spec.attrs[arg.number_attr].minimum if arg.number_attr in spec.attrs else None
    # An empty list cannot decide a type.
    least = (1 if arg.type_attr else 0) if least is None else least
    if len(tensors) < least:
        raise ValueError(
            f"List argument '{arg.name}' to '{spec.name}' Op with length {len(tensors)} shorter than minimum length "
            f"{least}."
        )
    # Two lists of one op can share a number attribute, such as the indices and data of DynamicStitch.
    count = known.setdefault(arg.number_attr, len(tensors))
    if count != len(tensors):
        raise ValueError(
            f"List argument '{arg.name}' to '{spec.name}' Op with length {len(tensors)} must match length "
            f"{count} of the other list arguments."
        )
    return tensors


def output_types(spec: OpSpec, attrs: dict[str, Any]) -> list[DType]:
    """The types of the outputs, given all attributes."""
    result: list[DType] = []
    for arg in spec.outputs:
        if arg.type_list_attr:
            result += attrs[arg.type_list_attr]
            continue
        dtype: DType = arg.dtype or attrs[arg.type_attr]
        if arg.is_ref:
            dtype = dtype._as_ref
        result += [dtype] * _arg_length(arg, attrs)
    return result


def add_const(array: np.ndarray, dtype: DType, name: str, verify_shape: Any = None) -> Tensor:
    """Adds a Const holding `array`."""
    graph = get_default_graph()
    spec = registry.get("Const")
    array = np.asarray(array)
    if stored_bytes(array) >= MAX_CONSTANT_BYTES:
        raise ValueError(
            "Cannot create a tensor proto whose content is larger than 2GB. Feed a placeholder or read a file instead."
        )
    # A constant never changes, and readers share its array.
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False  # the caller may go on changing theirs
    op = graph.add_op(spec, (), {"value": array, "dtype": dtype.base_dtype}, [dtype.base_dtype], name)
    return op._outputs[0]


def constant(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike = None,
    name: str | None = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """A tensor that always has this value; with `shape`, the last value fills the missing elements."""
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(value, Tensor):
        raise TypeError(f"Expected a Python or numpy value, got the tensor {value.name!r}; use tf.identity.")
    try:
        array = make_array(value, wanted)
    except NotImplementedError as e:  # a symbolic tensor has no value
        raise TypeError("List of Tensors when single Tensor expected; use tf.stack.") from e
    if shape is not None:
        array = _fill_shape(array, as_shape(shape), verify_shape)
    return add_const(array, wanted or dtypes.as_dtype(array.dtype), name or "Const")


def _fill_shape(array: np.ndarray, shape: TensorShape, verify: bool) -> np.ndarray:
    dims = tuple(shape.as_list())
    if array.shape == dims:
        return array
    if verify:
        raise TypeError(f"Expected Tensor's shape: {dims}, got {array.shape}.")
    total = shape.num_elements()
    if total is None:
        raise TypeError(f"tf.constant needs a fully known shape, not {shape}.")
    if array.size > total and array.size != 1:
        raise ValueError(f"Too many elements provided. Needed at most {total}, but received {array.size}")
    if array.size == 0 and total:
        raise ValueError("Cannot fill a shape from an empty value.")
    if array.size == 1 and total * array.itemsize >= MAX_CONSTANT_BYTES:
        return np.broadcast_to(array.reshape(()), dims)  # takes no memory, and one value in a GraphDef
    flat = np.empty(total, array.dtype)
    flat[: array.size] = array.ravel()[:total]
    flat[array.size :] = array.ravel()[-1] if total > array.size else 0
    return flat.reshape(dims)
