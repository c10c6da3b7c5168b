"""Signatures of SavedModels: which tensors a model takes and gives, under which names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tensorfleet.api.saved_model import names
from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet.graph.sparse_tensor import SparseTensor

if TYPE_CHECKING:
    from tensorfleet.base.protos import SignatureDef, TensorInfo


def _paths(module: str, name: str) -> list[str]:
    return [f"saved_model.{name}", f"saved_model.{module}.{name}", f"python.saved_model.{module}.{name}"]


@export(*_paths("utils", "build_tensor_info"))
def build_tensor_info(tensor: Any) -> TensorInfo:
    """A `TensorInfo` that describes a tensor, variable or sparse tensor of the graph."""
    from tensorfleet.base.protos import TensorInfo

    info = TensorInfo(dtype=tensor.dtype.as_datatype_enum, tensor_shape=tensor.get_shape().as_proto())
    if hasattr(tensor, "indices") and hasattr(tensor, "values"):
        info.coo_sparse.values_tensor_name = tensor.values.name
        info.coo_sparse.indices_tensor_name = tensor.indices.name
        info.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
    else:
        info.name = tensor.name
    return info


@export(
    "python.saved_model.utils.build_tensor_info_from_op",
    "python.saved_model.utils_impl.build_tensor_info_from_op",
)
def build_tensor_info_from_op(op: Operation) -> TensorInfo:
    """A `TensorInfo` that names an operation."""
    from tensorfleet.base.protos import TensorInfo

    return TensorInfo(name=op.name, tensor_shape=TensorShape(None).as_proto())


@export(
    "python.saved_model.signature_def_utils.op_signature_def",
    "python.saved_model.signature_def_utils_impl.op_signature_def",
)
def op_signature_def(op: Operation | Tensor, key: str) -> SignatureDef:
    """The signature that names the operation to run when a model is loaded or trained."""
    info = build_tensor_info(op) if isinstance(op, Tensor) else build_tensor_info_from_op(op)
    return build_signature_def(outputs={key: info})


@export(
    "python.saved_model.signature_def_utils.load_op_from_signature_def",
    "python.saved_model.signature_def_utils_impl.load_op_from_signature_def",
)
def load_op_from_signature_def(
    signature_def: SignatureDef, key: str, import_scope: str | None = None
) -> Operation | Tensor:
    """The operation or tensor that `op_signature_def` named; NotFoundError when the graph has none."""
    name = signature_def.outputs[key].name
    try:
        full = f"{import_scope}/{name}" if import_scope else name
        element: Operation | Tensor = get_default_graph().as_graph_element(full)
        return element
    except (KeyError, ValueError) as e:
        raise errors.NotFoundError(
            None,
            None,
            f"The key {key!r} could not be found in the graph. Please make sure the SavedModel was created by the internal "
            "_SavedModelBuilder. If you are using the public API, please make sure the SignatureDef in the SavedModel "
            f"does not contain the key {key!r}.",
        ) from e


@export(*_paths("utils", "get_tensor_from_tensor_info"))
def get_tensor_from_tensor_info(
    tensor_info: TensorInfo, graph: Graph | None = None, import_scope: str | None = None
) -> Tensor | SparseTensor:
    """The tensor, or sparse tensor, of the graph that a `TensorInfo` describes."""
    graph = graph or get_default_graph()

    def found(name: str) -> Tensor:
        return graph.get_tensor_by_name(f"{import_scope}/{name}" if import_scope else name)

    kind = tensor_info.WhichOneof("encoding")
    if kind == "name":
        return found(tensor_info.name)
    if kind == "coo_sparse":
        from tensorfleet.graph.sparse_tensor import SparseTensor

        sparse = tensor_info.coo_sparse
        parts = (sparse.indices_tensor_name, sparse.values_tensor_name, sparse.dense_shape_tensor_name)
        return SparseTensor(*(found(name) for name in parts))
    raise ValueError(f"Invalid TensorInfo.encoding: {kind}")


@export(*_paths("signature_def_utils", "build_signature_def"))
def build_signature_def(
    inputs: Mapping[str, TensorInfo] | None = None,
    outputs: Mapping[str, TensorInfo] | None = None,
    method_name: str | None = None,
) -> SignatureDef:
    """A `SignatureDef` from dictionaries of names to `TensorInfo`."""
    from tensorfleet.base.protos import SignatureDef

    signature = SignatureDef()
    for given, target in ((inputs, signature.inputs), (outputs, signature.outputs)):
        for name, info in (given or {}).items():
            target[name].ParseFromString(info.SerializeToString())
    if method_name is not None:
        signature.method_name = method_name
    return signature


@export(*_paths("signature_def_utils", "predict_signature_def"))
def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> SignatureDef:
    """The signature of a model that takes and gives tensors of any kind, by name."""
    for what, given in (("inputs", inputs), ("outputs", outputs)):
        if not given:
            raise ValueError(f"Prediction `{what}` cannot be None or empty.")
    return build_signature_def(
        {name: build_tensor_info(t) for name, t in inputs.items()},
        {name: build_tensor_info(t) for name, t in outputs.items()},
        names.PREDICT_METHOD,
    )


@export(*_paths("signature_def_utils", "regression_signature_def"))
def regression_signature_def(examples: Tensor, predictions: Tensor) -> SignatureDef:
    """The signature of a model that makes a float from each serialized `tf.Example`."""
    for what, given in (("examples", examples), ("predictions", predictions)):
        if given is None:
            raise ValueError(f"Regression `{what}` cannot be None.")
    _need_tensor(examples, "regression")
    _need(examples, dtypes.string, "Regression input tensors must be of type string.")
    _need(predictions, dtypes.float32, "Regression output tensors must be of type float.")
    return build_signature_def(
        {names.INPUTS: build_tensor_info(examples)},
        {names.OUTPUTS: build_tensor_info(predictions)},
        names.REGRESS_METHOD,
    )


@export(*_paths("signature_def_utils", "classification_signature_def"))
def classification_signature_def(
    examples: Tensor, classes: Tensor | None, scores: Tensor | None
) -> SignatureDef:
    """The signature of a model that gives labels, scores or both for each serialized `tf.Example`."""
    if examples is None:
        raise ValueError("Classification `examples` cannot be None.")
    _need_tensor(examples, "classification")
    if classes is None and scores is None:
        raise ValueError("Classification `classes` and `scores` cannot both be None.")
    _need(examples, dtypes.string, "Classification input tensors must be of type string.")
    outputs = {}
    if classes is not None:
        _need(classes, dtypes.string, "Classification classes must be of type string Tensor.")
        outputs[names.CLASSES] = build_tensor_info(classes)
    if scores is not None:
        _need(scores, dtypes.float32, "Classification scores must be a float Tensor.")
        outputs[names.SCORES] = build_tensor_info(scores)
    return build_signature_def({names.INPUTS: build_tensor_info(examples)}, outputs, names.CLASSIFY_METHOD)


def _need_tensor(value: object, what: str) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(
            f"Expected {what} `examples` to be of type Tensor. Found `examples` of type {type(value)}."
        )


def _need(tensor: Tensor, dtype: dtypes.DType, message: str) -> None:
    if tensor.dtype.base_dtype != dtype:
        raise ValueError(f"{message} Found tensors with type {tensor.dtype.name}.")


@export(*_paths("signature_def_utils", "is_valid_signature"))
def is_valid_signature(signature_def: SignatureDef | None) -> bool:
    """Whether a signature is one that servers know: to classify, regress or predict."""
    if signature_def is None:
        return False
    inputs = {name: dtypes.as_dtype(i.dtype) for name, i in signature_def.inputs.items()}
    outputs = {name: dtypes.as_dtype(o.dtype) for name, o in signature_def.outputs.items()}
    # Classification and regression take serialized examples, and nothing else.
    examples = inputs == {names.INPUTS: dtypes.string}
    if signature_def.method_name == names.PREDICT_METHOD:
        return bool(inputs and outputs)
    if signature_def.method_name == names.REGRESS_METHOD:
        return examples and outputs == {names.OUTPUTS: dtypes.float32}
    if signature_def.method_name == names.CLASSIFY_METHOD:
        allowed = {(names.CLASSES, dtypes.string), (names.SCORES, dtypes.float32)}
        return examples and bool(outputs) and set(outputs.items()) <= allowed
    return False
