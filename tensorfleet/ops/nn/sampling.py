"""Candidate samplers: the few classes that stand for all when a softmax is trained by sampling.

They draw TensorFlow's own numbers: with its seeds set, an op samples the same classes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.files import whole_file
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply_list
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels import philox, philox_sampling
from tensorfleet.ops.nn.shapes import of_rank, same_dimension
from tensorfleet.ops.random.ops import seeds

_SIGNATURE = "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, "
_SIGNATURE += "sampled_expected_count: float"
_COMMON = "num_true: int >= 1; num_sampled: int >= 1; unique: bool; "
_SEEDS = "seed: int = 0; seed2: int = 0"
_LEAST = np.finfo(np.float32).min  # what a logit gets to have no weight in a softmax


def _shapes(op: Operation) -> list[TensorShape]:
    rows, _ = of_rank(op._inputs[0].shape, 2).as_list()
    sampled = TensorShape._of((op._attrs["num_sampled"],))
    return [sampled, TensorShape._of((rows, op._attrs["num_true"])), sampled]


def _check(true_classes: Array, num_true: int, num_sampled: int, unique: bool, range_max: int) -> None:
    if true_classes.ndim != 2:
        raise errors.invalid("true_classes must be a matrix")
    if true_classes.shape[1] != num_true:
        raise errors.invalid(
            f"true_classes must have num_true columns, expected: {true_classes.shape[1]} was: {num_true}"
        )
    if unique and num_sampled > range_max:
        raise errors.invalid("Sampler's range is too small.")
    # as unsigned numbers, negative ones are huge
    if true_classes.size and np.maximum.reduce(true_classes.view(np.uint64), axis=None) >= range_max:
        odd = true_classes[(true_classes < 0) | (true_classes >= range_max)][0]
        raise errors.invalid(f"`true_candidate` out of range [0, {range_max}), received {odd}")


#: A sampler; it gives the candidates, and how often the true and the sampled classes are expected.
_Draw: TypeAlias = Callable[..., tuple[Array, Array, Array]]


def _declare(name: str, attrs: str, draw: _Draw) -> None:
    """Declares a sampler over range_max classes; `draw(ctx, stream, true_classes)` gives its outputs."""

    def kernel(
        ctx: HostContext,
        true_classes: Array,
        *,
        num_true: int,
        num_sampled: int,
        unique: bool,
        range_max: int,
    ) -> tuple[Array, Array, Array]:
        classes = np.asarray(true_classes)
        _check(classes, num_true, num_sampled, unique, range_max)
        stream = ctx.random(philox.reserved("CandidateSampler", num_sampled))
        return draw(ctx, stream, classes, num_sampled, unique, range_max)

    declared = f"{_COMMON}range_max: int >= 1; {attrs}{_SEEDS}"
    op(name, _SIGNATURE, declared, shape=_shapes, host=True, stateful=True)(kernel)
    not_differentiable(name)


def _stateless(sample: _Draw) -> _Draw:
    return lambda ctx, stream, classes, count, unique, top: sample(stream, classes, count, unique, top)


def _learned(
    ctx: HostContext, stream: Array, classes: Array, count: int, unique: bool, range_max: int
) -> tuple[Array, Array, Array]:
    make = lambda: philox_sampling.initial_unigram_weights(range_max)  # noqa: E731
    weights = ctx.resources.get("", "unigrams", f"{ctx.op.name}/{range_max}", make)
    return philox_sampling.learned_unigram_candidate_sampler(stream, classes, count, unique, weights)


_tables: weakref.WeakKeyDictionary[Operation, philox_sampling.Unigrams] = weakref.WeakKeyDictionary()


def _fixed(
    ctx: HostContext, stream: Array, classes: Array, count: int, unique: bool, range_max: int
) -> tuple[Array, Array, Array]:
    table = _tables.get(ctx.op)
    if table is None:
        table = _tables[ctx.op] = _unigrams(ctx.op._attrs)
    if len(table.weights) != range_max:
        text = f"range_max is {range_max}, but the distribution has {len(table.weights)} classes"
        raise errors.invalid(text)
    return philox_sampling.fixed_unigram_candidate_sampler(stream, classes, count, unique, table)


def _unigrams(attrs: dict[str, Any]) -> philox_sampling.Unigrams:
    """The distribution that a FixedUnigramCandidateSampler's attributes describe."""
    path, weights = attrs["vocab_file"], list(attrs["unigrams"])
    if bool(path) == bool(weights):
        raise errors.invalid("Must provide exactly one of vocab_file and unigrams to the unigram sampler")
    if path:
        lines = whole_file(path).decode().splitlines()
        weights = [float(line.rsplit(",", 1)[-1]) for line in lines if line.strip()]
    return philox_sampling.Unigrams(
        weights, attrs["distortion"], attrs["num_reserved_ids"], attrs["num_shards"], attrs["shard"]
    )


_FIXED = (
    "vocab_file: string = ''; distortion: float = 1.0; num_reserved_ids: int = 0; num_shards: int >= 1 = 1; "
)
_FIXED += "shard: int >= 0 = 0; unigrams: list(float) = []; "

_declare("LogUniformCandidateSampler", "", _stateless(philox_sampling.log_uniform_candidate_sampler))
_declare("UniformCandidateSampler", "", _stateless(philox_sampling.uniform_candidate_sampler))
_declare("LearnedUnigramCandidateSampler", "", _learned)
_declare("ThreadUnsafeUnigramCandidateSampler", "", _learned)
_declare("FixedUnigramCandidateSampler", _FIXED, _fixed)


@op("AllCandidateSampler", _SIGNATURE, f"{_COMMON}{_SEEDS}", shape=_shapes, host=True, stateful=True)
def _all_candidates(
    ctx: HostContext, true_classes: Array, *, num_true: int, num_sampled: int
) -> tuple[Array, Array, Array]:
    classes = np.asarray(true_classes)
    _check(classes, num_true, num_sampled, True, num_sampled)
    ctx.random(philox.reserved("CandidateSampler", num_sampled))
    return philox_sampling.all_candidate_sampler(classes, num_sampled)


not_differentiable("AllCandidateSampler")


_NO_HITS = (np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.float32))


def _hit_shapes(op: Operation) -> list[TensorShape]:
    _, columns = of_rank(op._inputs[0].shape, 2).as_list()
    same_dimension(columns, op._attrs["num_true"])
    of_rank(op._inputs[1].shape, 1)
    return [TensorShape._of((None,))] * 3


@op(
    "ComputeAccidentalHits",
    "true_classes: int64, sampled_candidates: int64 -> indices: int32, ids: int64, weights: float",
    f"num_true: int; {_SEEDS}",
    shape=_hit_shapes,
    host=True,
)
def _accidental_hits(
    ctx: HostContext, true_classes: Array, sampled: Array, *, num_true: int
) -> tuple[Array, Array, Array]:
    classes, sampled = np.asarray(true_classes), np.asarray(sampled)
    if classes.ndim != 2 or classes.shape[1] != num_true:
        raise errors.invalid("true_classes must be a batch_size * num_true matrix")
    # where a class was sampled more than once, its last place counts
    places = dict(zip(sampled.tolist(), range(sampled.size), strict=True))
    flat = classes.ravel().tolist()
    if places.keys().isdisjoint(flat):
        return _NO_HITS
    hits = [k for k, value in enumerate(flat) if value in places]
    return (
        np.array([k // num_true for k in hits], np.int32),
        np.array([places[flat[k]] for k in hits], np.int64),
        np.full(len(hits), _LEAST, np.float32),
    )


not_differentiable("ComputeAccidentalHits")


# -- the functions -----------------------------------------------------------------------------------


def _sampler(
    kind: str,
    true_classes: TensorLike,
    seed: int | None,
    name: str | None,
    **attrs: Any,
) -> list[Tensor]:
    return apply_list(kind, true_classes, name=name, **attrs, **seeds(seed))


def _sampler_of(kind: str, public: str, does: str) -> Callable[..., list[Tensor]]:
    def sampler(
        true_classes: TensorLike,
        num_true: int,
        num_sampled: int,
        unique: bool,
        range_max: int,
        seed: int | None = None,
        name: str | None = None,
    ) -> list[Tensor]:
        attrs = dict(num_true=num_true, num_sampled=num_sampled, unique=unique, range_max=range_max)
        return _sampler(kind, true_classes, seed, name, **attrs)

    sampler.__name__ = sampler.__qualname__ = public
    sampler.__doc__ = does
    return export(f"nn.{public}", f"random.{public}")(sampler)


uniform_candidate_sampler = _sampler_of(
    "UniformCandidateSampler",
    "uniform_candidate_sampler",
    """Samples classes, all equally likely.

    Gives (sampled classes, how often each true class is expected in such a sample, the same for each
    sampled class), as all samplers do.
    """,
)
log_uniform_candidate_sampler = _sampler_of(
    "LogUniformCandidateSampler",
    "log_uniform_candidate_sampler",
    "Samples classes as frequent as words sorted by frequency: for vocabularies in that order.",
)
learned_unigram_candidate_sampler = _sampler_of(
    "LearnedUnigramCandidateSampler",
    "learned_unigram_candidate_sampler",
    "Samples classes as frequent as they were among the true classes so far.",
)


@export("nn.fixed_unigram_candidate_sampler", "random.fixed_unigram_candidate_sampler")
def fixed_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """Samples classes by weights given in `unigrams`, or as the last column of a `vocab_file`."""
    given = {**locals(), "unigrams": list(unigrams)}
    return _sampler("FixedUnigramCandidateSampler", **given)


@export("nn.all_candidate_sampler", "random.all_candidate_sampler")
def all_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """All `num_sampled` classes: for comparing a sampled loss with the whole one."""
    attrs = dict(num_true=num_true, num_sampled=num_sampled, unique=unique)
    return _sampler("AllCandidateSampler", true_classes, seed, name, **attrs)


@export("nn.compute_accidental_hits")
def compute_accidental_hits(
    true_classes: TensorLike,
    sampled_candidates: TensorLike,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """Where a true class was also sampled: (rows, places in the sample, the lowest float for each)."""
    kind = "ComputeAccidentalHits"
    return apply_list(kind, true_classes, sampled_candidates, num_true=num_true, name=name, **seeds(seed))
