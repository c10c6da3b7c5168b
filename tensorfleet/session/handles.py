"""Fetched handles of queues, tables, readers and variables, as arrays of names.

A handle itself is an object of the process that made it. Fetching one makes the object, where its operation is placed, and
gives the names by which TensorFlow finds it: before there were resources a container and a name, since then a message.
"""

from __future__ import annotations

import numpy as np

from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.plan import variable_of

_CONTAINER = b"localhost"  # what TensorFlow calls the container that has no name
_RESOURCE = np.dtype([("resource", np.uint8)])


def is_handle(tensor: Tensor) -> bool:
    """Whether a tensor is a handle, and not a value or a reference to one."""
    if tensor.dtype.name == "resource":
        return True
    return (
        tensor.dtype.name == "string_ref"
        and not tensor.op.type.startswith("Ref")
        and variable_of(tensor) is None
    )


def described(tensor: Tensor) -> np.ndarray:
    """The fetched value of a handle: [container, name], or the bytes of a message with both."""
    op = _maker(tensor)
    container = op._attrs.get("container") or _CONTAINER
    name = op._attrs.get("shared_name") or f"_{op._id}_{op.name}".encode()
    if tensor.dtype.name == "string_ref":
        return np.array([container, name], object)
    from tensorfleet.base.protos import ResourceHandleProto

    message = ResourceHandleProto(
        device=op.device, container=container.decode(), name=name.decode(), maybe_type_name=op.type
    )
    return np.frombuffer(message.SerializeToString(), _RESOURCE)


def _maker(tensor: Tensor) -> Operation:
    """The operation that makes the resource of a handle; others pass it on."""
    op = tensor.op
    while len(op._inputs) and op._inputs[0].dtype.base_dtype == tensor.dtype.base_dtype:
        op = op._inputs[0].op
    return op
