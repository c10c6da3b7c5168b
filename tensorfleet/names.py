"""What `import tensorfleet` imports: the modules that every program needs. The index knows the rest."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import warnings
from pathlib import Path

from tensorfleet.base import dtypes, errors, index, settings, shapes
from tensorfleet.base.devices import DeviceSpec
from tensorfleet.base.naming import publish, publish_lazily
from tensorfleet.base.protos import public

# Modules that change how others work, such as `tensor[1:]` or `tf.convert_to_tensor(variable)`, and those without
# which no graph is built or run. Whatever they import comes with them.
EAGER = """
    tensorfleet.ops.ragged.dispatch tensorfleet.graph.graph tensorfleet.graph.indexed_slices tensorfleet.graph.registry tensorfleet.graph.scopes
    tensorfleet.ops.operators tensorfleet.ops.array.indexing tensorfleet.ops.array.gather
    tensorfleet.ops.control.protos tensorfleet.ops.vjp
    tensorfleet.api.variables.variable tensorfleet.api.variables.partitioned tensorfleet.api.variables.protos
    tensorfleet.session.session tensorfleet.fleet
"""
_DTYPES = """
    float16 half float32 float64 double bfloat16 complex64 complex128 int8 uint8 int16 uint16 int32 uint32
    int64 uint64 bool string qint8 quint8 qint16 quint16 qint32 resource variant QUANTIZED_DTYPES
"""
_ERROR_FUNCTIONS = {
    "exception_type_from_error_code",
    "error_code_from_exception_type",
    "raise_exception_on_not_ok_status",
}
# Installed beside us: TensorFlow names that few programs use, in a package of their own.
_ANNEX = "tensorfleet_legacy"


def load() -> None:
    """Imports what every program needs, and attaches the names of everything else."""
    index.attach((Path(__file__).parent / "index.txt").read_text())
    annex = importlib.util.find_spec(_ANNEX)
    if annex is not None and annex.origin is not None:
        index.attach((Path(annex.origin).parent / "index.txt").read_text())
    for sentence in settings.unknown(os.environ):
        warnings.warn(sentence, stacklevel=2)
    publish_base()
    for module in EAGER.split():
        importlib.import_module(module)


def alias_version_1() -> None:
    """Makes `import tensorfleet.compat.v1 as tf` work, and `import tensorfleet.compat.v1.train`: it is all version 1 here.

    TensorFlow leaves contrib and its inner modules out of compat.v1, and so do these names.
    """
    root = f"{__package__}."
    outside = (f"{root}compat", f"{root}contrib", f"{root}python", f"{root}core")
    places = [
        name
        for name, module in sys.modules.items()
        if name.startswith(root) and getattr(module, "__path__", None) == [] and not name.startswith(outside)
    ]
    sys.modules[f"{root}compat.v1"] = sys.modules[__package__]
    for name in places:
        sys.modules[f"{root}compat.v1.{name.removeprefix(root)}"] = sys.modules[name]


def publish_base() -> None:
    """Publishes the names of base/ and graph/ whose modules do not do it themselves."""
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
