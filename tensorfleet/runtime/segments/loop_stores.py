"""TensorArrays and stacks while a loop is traced: dense buffers that the loop carries along."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from tensorfleet.graph.kernels import Kernel
from tensorfleet.runtime.segments.segment import NeedsValue
from tensorfleet.state.tensor_arrays import ArrayStore, StackStore

if TYPE_CHECKING:
    from tensorfleet.base.types import Array, ArrayModule, Dims
    from tensorfleet.graph.kernel_types import Check
    from tensorfleet.runtime.values import Signature, Values

_FLOW = np.zeros((), np.float32)
#: The arrays of a fixed value: what kind of store it is, its buffers, the names of its gradients before theirs.
Content: TypeAlias = tuple[Any, ...]
SIZE = "size"  # marks that the size of an array with room follows


def element(buffer: Array, index: Any) -> Array:
    """One element of a buffer."""
    import jax

    result: Array = jax.lax.dynamic_index_in_dim(buffer, index, 0, False)
    return result


def put(buffer: Array, index: Any, value: Array) -> Array:
    """A buffer with another element; an index outside has failed a check before.

    XLA makes four small loops of `buffer.at[index].set(value)`, which checks the index, and one of this.
    """
    import jax
    import jax.numpy as jnp

    changed: Any = jax.lax.dynamic_update_index_in_dim(buffer, jnp.asarray(value, buffer.dtype), index, 0)
    return cast("Array", changed)


class NotTraceable(NeedsValue):
    """An operation in a loop that XLA cannot run; the loop then runs on the host."""

    def __init__(self) -> None:
        super().__init__(0)


class TracedArray:
    """A TensorArray while a loop is traced."""

    __slots__ = ("adds", "buffer", "dtype", "element", "grads", "room", "size", "written")

    def __init__(
        self, size: Any, room: int, dtype: np.dtype[Any], element: Dims | None, buffer: Any, adds: bool
    ) -> None:
        self.size = size  # a number, or traced where there is room for more elements
        self.room = room
        self.dtype = dtype
        self.element = element
        self.buffer = buffer
        self.adds = adds
        self.written = False
        self.grads: dict[bytes, TracedArray] = {}

    def grad(self, source: bytes) -> TracedArray:
        """The array of the gradients."""
        gradients = self.grads.get(source)
        if gradients is None:
            gradients = self.grads[source] = TracedArray(
                self.size, self.room, self.dtype, self.element, None, True
            )
            if self.buffer is not None:
                gradients.element = tuple(self.buffer.shape[1:])
        return gradients

    def write(self, jnp: ArrayModule, index: Array, value: Array, check: Check) -> None:
        """Sets, or adds to, one element."""
        self._need(jnp, tuple(np.shape(value)))
        check((index >= 0) & (index < self.size), "")
        self.buffer = put(self.buffer, index, element(self.buffer, index) + value if self.adds else value)
        self.written = True

    def _need(self, jnp: ArrayModule, shape: Dims) -> None:
        if self.buffer is None:
            self.buffer = jnp.zeros((self.room, *shape), self.dtype)
        if tuple(self.buffer.shape[1:]) != shape:
            raise NotTraceable

    def read(self, jnp: ArrayModule, index: Array, check: Check) -> Array:
        """One element."""
        if self.buffer is None:
            if not self.adds or self.element is None:
                raise NotTraceable
            self._need(jnp, self.element)
        check((index >= 0) & (index < self.size), "")
        return element(self.buffer, index)


class TracedStack:
    """A stack while a loop is traced."""

    __slots__ = ("buffer", "count", "most", "moved", "written")

    def __init__(self, buffer: Any, count: Any, most: int | None) -> None:
        self.buffer = buffer
        self.count = count
        self.most = most
        self.moved = False
        self.written = False

    def push(self, jnp: ArrayModule, value: Array) -> Array:
        """Puts a value on top."""
        value = jnp.asarray(value)
        if self.buffer is None:
            if self.most is None:
                raise NotTraceable
            self.buffer = jnp.zeros((self.most, *value.shape), value.dtype)
        if self.buffer.shape[1:] != value.shape:
            raise NotTraceable
        self.buffer = put(self.buffer, self.count, value)
        self.count = self.count + 1
        self.moved = self.written = True
        return value

    def pop(self) -> Array:
        """Takes the value on top."""
        if self.buffer is None:
            raise NotTraceable
        self.count = self.count - 1
        self.moved = True
        return element(self.buffer, self.count)


class StoreKernel(Kernel):
    """The traced form of an operation on TensorArrays and stacks."""

    def call(self, first: Any, values: Sequence[Any], check: Any = None) -> tuple[Any, ...]:
        """Runs the operation on buffers."""
        kind, store, rest = self.op.type, values[0], values[1:]
        if isinstance(store, TracedStack):
            return (store.push(first, rest[0]),) if kind == "StackPushV2" else (store.pop(),)
        if not isinstance(store, TracedArray):
            raise NotTraceable
        if kind == "TensorArrayGradV3":
            return store.grad(self.op._attrs["source"]), _FLOW
        if kind == "TensorArraySizeV3":
            return (np.int32(store.size) if isinstance(store.size, int) else store.size,)
        if kind == "TensorArrayReadV3":
            return (store.read(first, rest[0], check),)
        store.write(first, rest[0], rest[1], check)
        return (_FLOW,)


STORES = {"StackPushV2", "StackPopV2", "TensorArrayGradV3", "TensorArraySizeV3"}
STORES |= {"TensorArrayReadV3", "TensorArrayWriteV3"}


def room_for(count: int) -> int:
    """How many elements a buffer for so many has room for: the next power of two."""
    return 1 << max(count - 1, 0).bit_length()


def roomy(content: Content, value: object) -> Content:
    """The same content with room in its arrays; the real size then comes last."""
    if not isinstance(value, (ArrayStore, StackStore)):
        return content
    room = room_for(len(value.elements)) if isinstance(value, ArrayStore) else None
    longer = [_lengthened(c, room) if np.ndim(c) else c for c in content]
    return (*longer, SIZE, np.int32(len(value.elements))) if isinstance(value, ArrayStore) else tuple(longer)


def _lengthened(array: Array, room: int | None) -> Array:
    """An array with zeros behind its elements."""
    array = np.asarray(array)
    room = room_for(len(array)) if room is None else room
    if len(array) == room:
        return array
    result = np.zeros((room, *array.shape[1:]), array.dtype)
    result[: len(array)] = array
    return result


def content_of(value: object, pushed: bool) -> Content:
    """The arrays of a fixed value: itself, an array's elements, a stack's items and their number."""
    if isinstance(value, ArrayStore):
        grads = [part for source in sorted(value.grads) for part in (source, value.grads[source].packed())]
        return ("array", value.packed(), *grads)
    if isinstance(value, StackStore):
        return ("stack", None, np.int32(0)) if pushed else ("stack", *value.packed())
    return (value,)


def signature(content: Content) -> Signature:
    """The shapes of a value's arrays."""
    return tuple(c if c is None or isinstance(c, (str, bytes)) else np.shape(c) for c in content)


def traced_stores(
    fixed: Values,
) -> Iterator[tuple[tuple[int, bytes | None], TracedArray | TracedStack]]:
    """The traced stores among a loop's fixed values, and arrays of gradients: (position, source), store."""
    for k, store in enumerate(fixed):
        if isinstance(store, (TracedArray, TracedStack)):
            yield (k, None), store
        if isinstance(store, TracedArray):
            yield from (((k, source), one) for source, one in store.grads.items())


def store_at(fixed: Values, k: int, source: bytes | None) -> Any:
    """The traced store at a position, or its gradients of a source."""
    return fixed[k] if source is None else fixed[k].grads[source]
