"""Everything that publishes public names, in the order of the journey of a step."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def load() -> None:
    """Imports every module that publishes names, and the names that come from elsewhere."""
    from tensorfleet import graph, ops
    from tensorfleet.base import dtypes, errors, shapes
    from tensorfleet.base.devices import DeviceSpec
    from tensorfleet.base.naming import publish, publish_lazily
    from tensorfleet.base.protos import public
    from tensorfleet.graph.graph import Graph
    from tensorfleet.graph.indexed_slices import IndexedSlices
    from tensorfleet.graph.operation import Operation, Tensor
    from tensorfleet.graph.registry import NotDifferentiable, RegisterGradient

    publish(Graph, "Graph")
    publish(Operation, "Operation")
    publish(Tensor, "Tensor")
    publish(IndexedSlices, "IndexedSlices")
    publish(RegisterGradient, "RegisterGradient")
    publish(NotDifferentiable, "NotDifferentiable", "NoGradient", "no_gradient")
    publish(DeviceSpec, "DeviceSpec")
    publish(shapes.TensorShape, "TensorShape")
    publish(shapes.Dimension, "Dimension")
    publish(shapes.dimension_value, "dimension_value", "compat.dimension_value")
    publish(shapes.dimension_at_index, "dimension_at_index", "compat.dimension_at_index")
    publish(dtypes.DType, "DType", "dtypes.DType")
    publish(dtypes.as_dtype, "as_dtype", "dtypes.as_dtype")
    for name in _DTYPES.split():
        dtype = getattr(dtypes, name + "_" if name == "bool" else name)
        publish(dtype, name, f"dtypes.{name}")
    for name in dir(errors):
        if name == "OperatorNotAllowedInGraphError":
            continue  # it is known inside only
        if name.endswith("Error") or name in _ERROR_FUNCTIONS or (name.isupper() and name[0] != "_"):
            publish(getattr(errors, name), f"errors.{name}")
    publish(errors.OpError, "OpError")
    publish_lazily(public.message, *public.NAMES.split())
    _import_all(graph)
    _import_all(ops)
    for name in _LATER.split():
        _import_all(importlib.import_module(f"tensorfleet.{name}"))


_DTYPES = """
    float16 half float32 float64 double bfloat16 complex64 complex128 int8 uint8 int16 uint16 int32 uint32
    int64 uint64 bool string qint8 quint8 qint16 quint16 qint32 resource variant QUANTIZED_DTYPES
"""
_ERROR_FUNCTIONS = {
    "exception_type_from_error_code",
    "error_code_from_exception_type",
    "raise_exception_on_not_ok_status",
}
# What is imported after graph/ and ops/, whole packages or the one module that publishes their names.
_LATER = """
    nest platform io variables summary autograph.public image signal linear_operators.names ragged_tensors cluster.resolvers cluster.slurm cluster.clouds data
    session functions.def_function functions.wrapping functions.batching distribute.names train nn losses metrics layers saved_model fleet contrib feature_column.names distributions.names
    seq2seq.names keras.names profiler.names tutorials internals estimator.names estimator.inside testing.names
"""
# Costs time to import and publishes nothing itself: what uses it loads it.
_WHEN_USED = {"tensorfleet.base.platform.flags"}


def _import_all(package: ModuleType) -> None:
    """Imports a module, and every module inside it when it is a package."""
    for found in pkgutil.iter_modules(getattr(package, "__path__", [])):
        name = f"{package.__name__}.{found.name}"
        if name not in _WHEN_USED:
            importlib.import_module(name)
