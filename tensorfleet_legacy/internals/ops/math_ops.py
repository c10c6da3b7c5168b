"""Small parts of the modules in `tensorflow.python.ops` that have no public name."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.api.losses import weights as loss_weights
from tensorfleet.api.metrics import base as metrics
from tensorfleet.api.metrics.thresholds import KINDS, counts_at_thresholds
from tensorfleet.api.metrics.top_k import average_precision_at_top_k
from tensorfleet.api.variables.variable import ResourceVariable
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find, publish
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import CompositeTensor, IndexedSlices
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies, get_default_graph, name_scope
from tensorfleet.ops.control.context import switch


@export("python.ops.resource_variable_ops.is_resource_variable")
def is_resource_variable(var: Any) -> bool:
    """Whether a variable is reached through a handle."""
    return isinstance(var, ResourceVariable)


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
    result = apply(
        "VariableV2",
        shape=as_shape(shape) if set_shape else TensorShape(None),
        dtype=dtype,
        name=name,
        container=container,
        shared_name=shared_name,
    )
    return result


@export("python.ops.math_ops.reduced_shape")
def reduced_shape(input_shape: Any, axes: Any) -> Tensor:
    """The shape, with a 1 for each dimension that is reduced."""
    shape = find("to_int32")(input_shape)
    rank = find("size")(shape)
    where = (find("to_int32")(axes) + rank) % rank
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
    result = [as_indexed_slices(x) for x in inputs]
    if len({x.indices.dtype for x in result}) < 2:
        return result
    cast = find("cast")
    return [IndexedSlices(x.values, cast(x.indices, dtypes.int64), x.dense_shape) for x in result]


@export("python.ops.nn_ops._flatten_outer_dims")
def flatten_outer_dims(logits: Tensor) -> Tensor:
    """A matrix of the last dimension against all others."""
    result = find("reshape")(logits, [-1, find("shape")(logits)[-1]])
    dims = logits.shape.as_list() if logits.shape.ndims else None
    if dims is not None:
        outer = None if None in dims[:-1] else int(np.prod(dims[:-1]))
        result.set_shape([outer, dims[-1]])
    return result


@export("python.ops.metrics_impl._safe_scalar_div")
def safe_scalar_div(numerator: Tensor, denominator: Tensor, name: str | None) -> Tensor:
    """A quotient of two numbers, zero where the divisor is."""
    for value in (numerator, denominator):
        value.shape.with_rank_at_most(1)
    return find("div_no_nan")(numerator, denominator, name=name)


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


@export("python.ops.metrics_impl._confusion_matrix_at_thresholds")
def confusion_matrix_at_thresholds(
    labels: Any, predictions: Any, thresholds: Any, weights: Any = None, includes: Any = None
) -> tuple[dict, dict]:
    """Counts of right and wrong predictions at each threshold: values and updates, by "tp", "fn", "tn", "fp"."""
    return counts_at_thresholds(labels, predictions, list(thresholds), weights, tuple(includes or KINDS))


@export("python.ops.metrics_impl._aggregate_variable")
def aggregate_variable(v: Any, collections: Any) -> Tensor:
    """The value of a metric's variable, which is in the collections from now on."""
    return metrics.collect(find("identity")(v), None, collections, None)[0]


publish(average_precision_at_top_k, "python.ops.metrics_impl._streaming_sparse_average_precision_at_top_k")
publish(
    lambda predictions, labels, weights: metrics.fitted(predictions, labels, weights),
    "python.ops.metrics_impl._remove_squeezable_dimensions",
)


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
    result = shared_resources() + local_resources() if resource_list is None else resource_list
    with name_scope(name):
        if not result:
            return find("constant")([], dtype=dtypes.string)
        with control_dependencies(None):
            missing = find("logical_not")(find("stack")([r.is_initialized for r in result]))
            names = find("constant")([r.handle.name for r in result])
            return find("boolean_mask")(names, missing)


@export("python.ops.gradients_impl._hessian_vector_product")
def hessian_vector_product(ys: Any, xs: Any, v: Any) -> list:
    """The second derivatives of `ys` times a vector, without the matrix."""
    if len(v) != len(xs):
        raise ValueError("xs and v must have the same length.")
    gradients, multiply, stop = find("gradients"), find("multiply"), find("stop_gradient")
    pairs = zip(gradients(ys, xs), v, strict=True)
    return gradients([multiply(g, stop(each)) for g, each in pairs if g is not None], xs)


@export("python.ops.control_flow_ops._Identity")
def _identity_or_ref(data: Any, name: str | None = None) -> Any:
    """A tensor again; the reference of a variable stays one."""
    if isinstance(data, CompositeTensor):
        return find("identity")(data, name)
    tensor = to_tensor(data, as_ref=True)
    return apply("RefIdentity" if tensor.dtype._is_ref_dtype else "Identity", tensor, name=name)


@export("python.ops.control_flow_ops._SwitchRefOrTensor")
def _switch_ref_or_tensor(data: Any, pred: Any, name: str = "Switch") -> tuple:
    """A tensor, or the reference of a variable, in two branches, where the tensor is."""
    tensor = to_tensor(data, as_ref=True)
    with colocate_with(tensor.op, ignore_existing=True):
        return tuple(switch(tensor, pred, name))


@export("python.ops.embedding_ops.embedding_lookup_v2")
def embedding_lookup_v2(params: Any, ids: Any, max_norm: Any = None, name: str | None = None) -> Tensor:
    """Rows of a table whose parts hold consecutive rows."""
    return find("nn.embedding_lookup")(params, ids, "div", name, max_norm=max_norm)


@export("python.ops.embedding_ops.embedding_lookup_sparse_v2")
def embedding_lookup_sparse_v2(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    combiner: str | None = None,
    max_norm: Any = None,
    name: str | None = None,
) -> Tensor:
    """Combined rows of a table whose parts hold consecutive rows."""
    return find("nn.embedding_lookup_sparse")(params, sp_ids, sp_weights, "div", name, combiner, max_norm)


@export("python.ops.embedding_ops.safe_embedding_lookup_sparse_v2")
def safe_embedding_lookup_sparse_v2(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: Any = None,
    max_norm: Any = None,
    name: str | None = None,
) -> Tensor:
    """Combined rows of a table whose parts hold consecutive rows; rows without ids get a default."""
    lookup = find("nn.safe_embedding_lookup_sparse")
    return lookup(embedding_weights, sparse_ids, sparse_weights, combiner, default_id, name, "div", max_norm)


@export("python.ops.template._skip_common_stack_elements")
def _skip_common_stack_elements(stacktrace: list, base_case: list) -> list:
    """A stack without the outer calls that it shares with another, but at least its innermost."""
    for i, (trace, base) in enumerate(zip(stacktrace, base_case, strict=False)):
        if trace != base:
            return stacktrace[i:]
    return stacktrace[-1:]


@export("python.ops.template.make_template_internal")
def make_template_internal(
    name_: str,
    func_: Any,
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Any = None,
    create_graph_function_: bool = False,
    **kwargs: Any,
) -> Any:
    """`tf.make_template`, whose function may be one of the graph."""
    function = find("python.eager.function.defun")(func_) if create_graph_function_ else func_
    return find("make_template")(name_, function, create_scope_now_, unique_name_, custom_getter_, **kwargs)


@export("python.ops.cond_v2.cond_v2")
def cond_v2(pred: Any, true_fn: Any, false_fn: Any, name: str = "cond") -> Any:
    """The result of one of two functions, as with `tf.cond`."""
    return find("cond")(pred, true_fn, false_fn, name=name)
