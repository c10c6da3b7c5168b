"""Single functions of TensorFlow's inside that its own tests call."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tensorfleet import dtypes, errors
from tensorfleet.api import export, find, publish
from tensorfleet.devices import DeviceSpec
from tensorfleet.graph import registry
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.meta_graph import register_proto_function
from tensorfleet.graph.operation import IndexedSlices, Tensor
from tensorfleet.graph.scopes import control_dependencies, get_default_graph, name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor, SparseTensorValue
from tensorfleet.losses import weights as loss_weights
from tensorfleet.metrics import base as metrics
from tensorfleet.ops.queues import type_list
from tensorfleet.shapes import TensorShape, as_shape

publish(register_proto_function, "python.framework.ops.register_proto_function")
publish(type_list, "python.ops.data_flow_ops._as_type_list")


@export("python.ops.state_ops.variable_op", "python.ops.state_ops.variable_op_v2")
def variable_op(
    shape: Any,
    dtype: Any,
    name: str = "Variable",
    set_shape: bool = True,
    container: str = "",
    shared_name: str = "",
) -> Tensor:
    """The reference of a variable that is not initialized and in no collection."""
    made = apply(
        "VariableV2",
        shape=as_shape(shape) if set_shape else TensorShape(None),
        dtype=dtype,
        name=name,
        container=container,
        shared_name=shared_name,
    )
    return made


@export("python.framework.sparse_tensor.is_sparse")
def is_sparse(x: Any) -> bool:
    """Whether something is a sparse tensor, or the value of one."""
    return isinstance(x, (SparseTensor, SparseTensorValue))


@export("python.framework.device.is_device_spec")
def is_device_spec(obj: Any) -> bool:
    """Whether something is a `DeviceSpec`."""
    return isinstance(obj, DeviceSpec)


@export("python.framework.device.check_valid")
def check_valid(spec: str) -> None:
    """ValueError for what is not the name of a device."""
    DeviceSpec.from_string(spec)


@export(
    "python.framework.errors_impl._make_specific_exception",
    "python.framework.errors._make_specific_exception",
)
def make_specific_exception(node_def: Any, op: Any, message: str, error_code: int) -> errors.OpError:
    """The exception of an error code."""
    try:
        made: errors.OpError = errors.exception_type_from_error_code(error_code)(node_def, op, message)
    except KeyError:
        made = errors.UnknownError(node_def, op, message, error_code)
    return made


@export("python.framework.ops.convert_n_to_tensor_or_indexed_slices")
def convert_n_to_tensor_or_indexed_slices(values: Any, dtype: Any = None, name: str | None = None) -> list:
    """Each of several values as a tensor; what is IndexedSlices, or None, stays as it is."""
    if not isinstance(values, (list, tuple)):
        raise TypeError("values must be a list.")
    convert = find("convert_to_tensor_or_indexed_slices")
    return [
        None if v is None else convert(v, dtype, None if name is None else f"{name}_{i}")
        for i, v in enumerate(values)
    ]


@export("python.framework.ops.internal_convert_to_tensor")
def internal_convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    as_ref: bool = False,
    preferred_dtype: Any = None,
    **_: Any,
) -> Tensor:
    """A value as a tensor; with `as_ref`, a variable as its reference."""
    return to_tensor(value, None if dtype is None else dtypes.as_dtype(dtype), name, preferred_dtype, as_ref)


@export("python.framework.ops.is_dense_tensor_like")
def is_dense_tensor_like(t: Any) -> bool:
    """Whether something is a tensor or a variable."""
    return isinstance(t, (Tensor, find("Variable")))


@export("python.framework.ops.register_dense_tensor_like_type")
def register_dense_tensor_like_type(tensor_type: Any) -> None:
    """Checks that a type has what a tensor has: a name and a dtype."""
    for attribute in ("name", "dtype"):
        if not isinstance(getattr(tensor_type, attribute, None), property):
            raise TypeError(f"Type {tensor_type.__name__} does not define a `{attribute}` property")


@export("python.framework.ops._run_using_default_session")
def run_using_default_session(operation: Any, feed_dict: Any, graph: Any, session: Any = None) -> None:
    """Runs an operation in a session, or in the default one."""
    operation.run(feed_dict, session)


@export("python.framework.ops._eval_using_default_session")
def eval_using_default_session(tensors: Any, feed_dict: Any, graph: Any, session: Any = None) -> Any:
    """Evaluates tensors in a session, or in the default one."""
    from tensorfleet.graph.scopes import session_for

    return session_for(session, graph, "evaluate tensor").run(tensors, feed_dict)


@export("python.framework.ops.dismantle_graph")
def dismantle_graph(graph: Any) -> None:
    """Does nothing: a graph that nobody holds is collected."""


class _Gradients:
    """The table of gradients, by op type or name."""

    def lookup(self, name: str) -> Any:
        """What computes a gradient; LookupError when there is nothing under the name."""
        try:
            return registry.named_gradient(name)
        except LookupError:
            raise LookupError(f"gradient registry has no entry for: {name}") from None

    def list(self) -> list[str]:
        """The names of all gradients."""
        known = [n for n, spec in registry.all_ops().items() if spec.gradient is not None]
        return [*known, *(n for n in registry._NAMED_GRADIENTS if n not in known)]


publish(_Gradients(), "python.framework.ops._gradient_registry", "python.framework.ops.gradient_registry")


@export("python.ops.math_ops.reduced_shape")
def reduced_shape(input_shape: Any, axes: Any) -> Tensor:
    """The shape, with a 1 for each dimension that is reduced."""
    shape = to_tensor(input_shape)
    rank = find("size")(shape)
    where = (to_tensor(axes) + rank) % rank
    ones = find("fill")(find("shape")(where), 1)
    return find("dynamic_stitch")([find("range")(rank), where], [shape, ones])


@export("python.ops.math_ops._as_indexed_slices")
def as_indexed_slices(x: Any, optimize: bool = True) -> IndexedSlices:
    """A tensor as the slices of all its rows."""
    if isinstance(x, IndexedSlices):
        return x
    if not isinstance(x, Tensor):
        raise TypeError(f"Not a Tensor or IndexedSlices: {type(x)}")
    shape = find("shape")(x)
    return IndexedSlices(x, find("range")(0, shape[0]), shape)


@export("python.ops.math_ops._as_indexed_slices_list")
def as_indexed_slices_list(inputs: Any, optimize: bool = True) -> list[IndexedSlices]:
    """Several tensors as slices whose indices have one type."""
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"Expected a list or tuple, not a {type(inputs)}")
    made = [as_indexed_slices(x) for x in inputs]
    if len({x.indices.dtype for x in made}) < 2:
        return made
    cast = find("cast")
    return [IndexedSlices(x.values, cast(x.indices, dtypes.int64), x.dense_shape) for x in made]


@export("python.ops.nn_ops._flatten_outer_dims")
def flatten_outer_dims(logits: Tensor) -> Tensor:
    """A matrix of the last dimension against all others."""
    made = find("reshape")(logits, [-1, find("shape")(logits)[-1]])
    dims = logits.shape.as_list() if logits.shape.ndims else None
    if dims is not None:
        outer = None if None in dims[:-1] else int(np.prod(dims[:-1]))
        made.set_shape([outer, dims[-1]])
    return made


@export("python.ops.metrics_impl._safe_div", "python.ops.losses.losses_impl._safe_div")
def safe_div(numerator: Any, denominator: Any, name: str | None = None) -> Tensor:
    """A quotient, zero where the divisor is not positive."""
    return metrics.ratio(numerator, denominator, name)


@export("python.ops.losses.losses_impl._safe_mean")
def safe_mean(losses: Any, num_present: Any) -> Tensor:
    """The sum of losses over their number; zero when there are none."""
    return metrics.ratio(find("reduce_sum")(losses), num_present, "value")


@export("python.ops.losses.losses_impl._num_present")
def num_present(losses: Any, weights: Any, per_batch: bool = False) -> Tensor:
    """How many losses have a weight that is not zero, in all or for each entry of the batch."""
    values = to_tensor(losses)
    weights = to_tensor(weights, values.dtype if not hasattr(weights, "dtype") else None)
    present = find("where")(
        find("equal")(weights, 0.0), find("zeros_like")(weights), find("ones_like")(weights)
    )
    present = loss_weights.broadcast_weights(present, values)
    if not per_batch:
        return find("reduce_sum")(present, name="num_present")
    axes = find("range")(1, find("rank")(present))
    return find("reduce_sum")(present, axis=axes, keepdims=True, name="num_present")


@export("python.ops.weights_broadcast_ops.assert_broadcastable")
def assert_broadcastable(weights: Any, values: Any) -> Any:
    """An operation that checks that weights fit values; ValueError when they cannot."""
    checks = loss_weights.check_broadcastable(weights, to_tensor(values, name="values"))
    if checks:
        return checks[0]
    return find("no_op")(name="static_scalar_check_success")


@export("python.ops.confusion_matrix.remove_squeezable_dimensions")
def remove_squeezable_dimensions(
    labels: Any, predictions: Any, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Drops the last dimension of one of the two when that is what their ranks differ by."""
    with name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        p, want = to_tensor(predictions), to_tensor(labels)
        squeeze = find("squeeze")
        if p.shape.ndims is not None and want.shape.ndims is not None:
            difference = p.shape.ndims - want.shape.ndims
            if difference == expected_rank_diff + 1 and p.shape[-1].is_compatible_with(1):
                p = squeeze(p, [-1])
            elif difference == expected_rank_diff - 1 and want.shape[-1].is_compatible_with(1):
                want = squeeze(want, [-1])
            return want, p
        cond, equal = find("cond"), find("equal")
        difference = find("rank")(p) - find("rank")(want)
        if p.shape.ndims is None or p.shape[-1].is_compatible_with(1):
            p = cond(equal(expected_rank_diff + 1, difference), lambda x=p: squeeze(x, [-1]), lambda x=p: x)
        if want.shape.ndims is None or want.shape[-1].is_compatible_with(1):
            want = cond(
                equal(expected_rank_diff - 1, difference), lambda x=want: squeeze(x, [-1]), lambda x=want: x
            )
        return want, p


publish(
    lambda predictions, labels, weights: metrics.fitted(predictions, labels, weights),
    "python.ops.metrics_impl._remove_squeezable_dimensions",
)


@export("python.layers.utils.convert_data_format")
def convert_data_format(data_format: str, ndim: int) -> str:
    """The layout as operations name it."""
    layouts = {3: ("NWC", "NCW"), 4: ("NHWC", "NCHW"), 5: ("NDHWC", "NCDHW")}
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError("Invalid data_format:", data_format)
    if ndim not in layouts:
        raise ValueError("Input rank not supported:", ndim)
    return layouts[ndim][data_format == "channels_first"]


@export("python.layers.utils.conv_output_length")
def conv_output_length(
    input_length: Any, filter_size: int, padding: str, stride: int, dilation: int = 1
) -> Any:
    """How long a convolution makes a dimension; None when the input's length is unknown."""
    if input_length is None:
        return None
    lost = 0 if padding in ("same", "causal") else (filter_size - 1) * dilation
    longer = (filter_size - 1) * dilation if padding == "full" else -lost
    return (input_length + longer + stride - 1) // stride


@export("python.layers.utils.conv_input_length")
def conv_input_length(output_length: Any, filter_size: int, padding: str, stride: int) -> Any:
    """How long the input of a convolution is, given its output; None when that is unknown."""
    if output_length is None:
        return None
    pad = {"same": filter_size // 2, "valid": 0, "full": filter_size - 1}[padding]
    return (output_length - 1) * stride - 2 * pad + filter_size


@export("python.layers.utils.deconv_output_length")
def deconv_output_length(input_length: Any, filter_size: int, padding: str, stride: int) -> Any:
    """How long a transposed convolution makes a dimension; None when the input's length is unknown."""
    if input_length is None:
        return None
    length = input_length * stride
    if padding == "valid":
        return length + max(filter_size - stride, 0)
    return length - (stride + filter_size - 2) if padding == "full" else length


@export("python.layers.utils.smart_cond")
def smart_cond(pred: Any, true_fn: Any = None, false_fn: Any = None, name: str | None = None) -> Any:
    """One of two functions' results: chosen now when the condition is known, else when it runs."""
    if isinstance(pred, find("Variable")):
        return find("cond")(pred, true_fn=true_fn, false_fn=false_fn, name=name)
    return find("python.framework.smart_cond.smart_cond")(pred, true_fn=true_fn, false_fn=false_fn, name=name)


class _Resource:
    """Something that a session must create before it is used."""

    def __init__(self, handle: Any, create: Any, is_initialized: Any) -> None:
        self.handle = handle
        self.create = create
        self.is_initialized = is_initialized


_RESOURCES = ("resources", "local_resources")


@export("python.ops.resources.register_resource")
def register_resource(handle: Any, create_op: Any, is_initialized_op: Any, is_shared: bool = True) -> None:
    """Adds a resource to those that are initialized together."""
    get_default_graph().add_to_collection(
        _RESOURCES[0 if is_shared else 1], _Resource(handle, create_op, is_initialized_op)
    )


@export("python.ops.resources.shared_resources")
def shared_resources() -> list:
    """The resources of the default graph that its sessions share."""
    return get_default_graph().get_collection(_RESOURCES[0])


@export("python.ops.resources.local_resources")
def local_resources() -> list:
    """The resources of the default graph that each session has."""
    return get_default_graph().get_collection(_RESOURCES[1])


@export("python.ops.resources.initialize_resources")
def initialize_resources(resource_list: Any, name: str = "init") -> Any:
    """An operation that creates resources."""
    if resource_list:
        return find("group")(*(r.create for r in resource_list), name=name)
    return find("no_op")(name=name)


@export("python.ops.resources.report_uninitialized_resources")
def report_uninitialized_resources(
    resource_list: Any = None, name: str = "report_uninitialized_resources"
) -> Tensor:
    """The names of the resources that do not exist yet."""
    found = shared_resources() + local_resources() if resource_list is None else resource_list
    with name_scope(name):
        if not found:
            return find("constant")([], dtype=dtypes.string)
        with control_dependencies(None):
            missing = find("logical_not")(find("stack")([r.is_initialized for r in found]))
            names = find("constant")([r.handle.name for r in found])
            return find("boolean_mask")(names, missing)


@export("python.ops.variable_scope._pure_variable_scope")
@contextmanager
def pure_variable_scope(name_or_scope: Any, **kwargs: Any) -> Iterator[Any]:
    """A variable scope without a name scope."""
    kwargs.pop("old_name_scope", None)
    names = {"use_resource": kwargs.pop("use_resource", None), **kwargs}
    with find("variable_scope")(name_or_scope, auxiliary_name_scope=False, **names) as scope:
        yield scope


@export("python.framework.ops.RegisterShape")
class RegisterShape:
    """Accepted for old tests: shapes are inferred by the ops themselves."""

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")

    def __call__(self, f: Any) -> Any:
        return f


@export("python.util.protobuf.compare.assertProtoEqual")
def assert_proto_equal(
    self: Any,
    a: Any,
    b: Any,
    check_initialized: bool = True,
    normalize_numbers: bool = False,
    msg: str | None = None,
) -> None:
    """Fails a test when two messages differ; either may be text."""
    self.assertProtoEquals(a, b, msg)


@export("python.autograph.core.ag_ctx.ControlStatusCtx")
@contextmanager
def control_status(status: Any = None, options: Any = None) -> Iterator[None]:
    """A block in which Python is or is not turned into graphs: it never is here."""
    yield


@export("python.autograph.core.ag_ctx.Status")
class Status(enum.Enum):
    """What such a block asks for."""

    UNSPECIFIED = 0
    ENABLED = 1
    DISABLED = 2


@export("python.framework.tensor_util.ShapeEquals")
def shape_equals(tensor_proto: Any, shape: Any) -> bool:
    """Whether a `TensorProto` has a shape."""
    if not hasattr(tensor_proto, "tensor_shape"):
        raise TypeError("tensor_proto is not a tensor_pb2.TensorProto object")
    dims = as_shape(shape).as_list() if not isinstance(shape, (list, tuple)) else list(shape)
    return [d.size for d in tensor_proto.tensor_shape.dim] == [int(d) for d in dims]


@export("python.ops.gradients_impl._hessian_vector_product")
def hessian_vector_product(ys: Any, xs: Any, v: Any) -> list:
    """The second derivatives of `ys` times a vector, without the matrix."""
    if len(v) != len(xs):
        raise ValueError("xs and v must have the same length.")
    gradients, multiply, stop = find("gradients"), find("multiply"), find("stop_gradient")
    pairs = zip(gradients(ys, xs), v, strict=True)
    return gradients([multiply(g, stop(each)) for g, each in pairs if g is not None], xs)
