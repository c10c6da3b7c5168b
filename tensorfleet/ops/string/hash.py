"""Strings hashed into buckets, and fingerprints of any tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import HostContext, Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.hashing import fingerprint64, murmur64, siphash64
from tensorfleet.kernels.lane_kernels import LaneKernel
from tensorfleet.kernels.lanes import Lanes
from tensorfleet.kernels.packed_strings import Strings, together
from tensorfleet.ops.common import same_as_input, static_value
from tensorfleet.ops.samples import case

_WORDS = np.array([[b"a", b"", b"hello"], [b"x" * 20, b"y" * 50, b"z" * 200]], object)


#: A hash function of many strings.
Hash: TypeAlias = Callable[[Strings | Array], Array]


def _buckets(strings: Strings | Array, hashed: Hash, count: int) -> Array:
    hashes = hashed(together(strings) or np.ravel(strings))
    return _in_buckets(hashes, count).reshape(np.shape(strings))


def _in_buckets(hashes: Array, count: int | Array) -> Array:
    divisor = np.asarray(count, np.uint64)
    hashes -= hashes // divisor * divisor  # in numpy, faster than the remainder
    return hashes.view(np.int64)


def _several(hashed: Hash) -> LaneKernel:
    """The kernel for several operations: all strings are hashed at once."""

    def joined(ops: list[Operation], given: Sequence[Lanes]) -> tuple[Lanes]:
        (strings,) = given
        hashes = hashed(strings.data.reshape(-1))
        counts = [op._attrs["num_buckets"] for op in ops]
        if len(set(counts)) == 1:
            return (strings.like(_in_buckets(hashes, counts[0]).reshape(strings.data.shape)),)
        each = strings.for_each_row(np.array(counts, np.uint64))
        hashes = hashes.reshape(strings.data.shape)
        return (strings.like(_in_buckets(hashes, each.reshape(-1, *[1] * (hashes.ndim - 1)))),)

    return joined


def _bucket_op(
    name: str, argument: str, attrs: str = "", joined: LaneKernel | None = None, **example: Any
) -> Callable[[Kernel], Kernel]:
    return op(
        name,
        f"{argument}: string -> output: int64",
        f"num_buckets: int >= 1{attrs}",
        shape=same_as_input,
        host=True,
        packed=True,
        joined=joined,
        examples=[
            case(_WORDS, num_buckets=2**62, **example),
            case(np.zeros((0, 2), object), num_buckets=5, **example),
        ],
    )


@_bucket_op("StringToHashBucket", "string_tensor", joined=_several(murmur64))
def _bucket(ctx: HostContext, strings: Strings | Array, *, num_buckets: int) -> Array:
    return _buckets(strings, murmur64, num_buckets)


@_bucket_op("StringToHashBucketFast", "input", joined=_several(fingerprint64))
def _bucket_fast(ctx: HostContext, strings: Strings | Array, *, num_buckets: int) -> Array:
    return _buckets(strings, fingerprint64, num_buckets)


@_bucket_op("StringToHashBucketStrong", "input", "; key: list(int)", key=[7, 2**40])
def _bucket_strong(ctx: HostContext, strings: Strings | Array, *, num_buckets: int, key: list[int]) -> Array:
    if len(key) != 2:
        raise errors.invalid("Key must have 2 elements")
    return _buckets(strings, lambda s: siphash64(s, (key[0], key[1])), num_buckets)


def _positive(op_type: str, num_buckets: int | None) -> None:
    if num_buckets is not None and int(num_buckets) < 1:
        raise ValueError(f"Attr 'num_buckets' of '{op_type}' Op passed {num_buckets} less than minimum 1.")


@export("string_to_hash_bucket", "strings.to_hash_bucket")
def string_to_hash_bucket(
    string_tensor: TensorLike = None,
    num_buckets: int | None = None,
    name: str | None = None,
    input: TensorLike = None,
) -> Tensor:
    """A number below `num_buckets` for each string. Prefer the `_fast` form: this hash is old and weak."""
    strings = string_tensor if input is None else input
    _positive("StringToHashBucket", num_buckets)
    return apply("StringToHashBucket", strings, num_buckets=num_buckets, name=name)


@export("string_to_hash_bucket_fast", "strings.to_hash_bucket_fast")
def string_to_hash_bucket_fast(input: TensorLike, num_buckets: int, name: str | None = None) -> Tensor:
    """A number below `num_buckets` for each string, the same on every machine."""
    _positive("StringToHashBucketFast", num_buckets)
    return apply("StringToHashBucketFast", input, num_buckets=num_buckets, name=name)


@export("string_to_hash_bucket_strong", "strings.to_hash_bucket_strong")
def string_to_hash_bucket_strong(
    input: TensorLike, num_buckets: int, key: list[int], name: str | None = None
) -> Tensor:
    """A number below `num_buckets` for each string; who does not know `key`, two integers, cannot foresee it."""
    _positive("StringToHashBucketStrong", num_buckets)
    return apply("StringToHashBucketStrong", input, num_buckets=num_buckets, key=key, name=name)


def _fingerprint_shape(op: Operation) -> TensorShape:
    rank = op._inputs[0].shape.rank
    if rank is not None and rank < 1:
        raise ValueError(f"Shape must be at least rank 1 but is rank {rank}")
    method = static_value(op, 1)
    if method is not None and method.ndim == 0 and method.item() != b"farmhash64":
        raise ValueError(f"Unsupported method: {method.item().decode(errors='replace')}")
    return TensorShape([op._inputs[0].shape.as_list()[0] if rank else None, None if method is None else 8])


@op(
    "Fingerprint",
    "data: T, method: string[0] -> fingerprint: uint8",
    "T: type",
    shape=_fingerprint_shape,
    host=True,
    examples=[
        case(np.arange(6, dtype=np.int32).reshape(3, 2), np.array(b"farmhash64", object)),
        case(_WORDS, np.array(b"farmhash64", object)),
        case(_WORDS[0], np.array(b"farmhash64", object)),
    ],
)
def _fingerprint(ctx: HostContext, data: Array, method: Array) -> Array:
    name = np.asarray(method).item()
    if name != b"farmhash64":
        raise errors.invalid(f"Unsupported fingerprint method: {name.decode(errors='replace')}")
    array = np.asarray(data)
    if array.ndim < 1:
        raise errors.invalid("`data` should have at least one dimension: []")
    if array.dtype != object:
        rows = [np.ascontiguousarray(row).tobytes() for row in array]
    elif array.size == len(array):
        rows = array.ravel().tolist()
    else:
        # A row of strings: the fingerprints of the strings, fingerprinted.
        each = fingerprint64(array.ravel()).reshape(len(array), -1).astype("<u8")
        rows = [row.tobytes() for row in each]
    return fingerprint64(rows).astype("<u8").view(np.uint8).reshape(len(rows), 8)


@export("fingerprint")
def fingerprint(data: TensorLike, method: str = "farmhash64", name: str | None = None) -> Tensor:
    """Eight bytes for each row of the first dimension of `data`, the same on every machine."""
    return apply("Fingerprint", data, method, name=name)


not_differentiable("StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong", "Fingerprint")
