"""`tf.data.Options`: wishes about how a dataset is run. They are kept and merged; few change anything here."""

from __future__ import annotations

import enum
from typing import Any, ClassVar, TypeVar

from tensorfleet.base.naming import export

_W = TypeVar("_W", bound="_OptionSet")


class _OptionSet:
    """Named settings, all None until set."""

    _names: tuple[str, ...] = ()
    #: the types of those that take one only
    _kinds: ClassVar[dict[str, type]] = {}

    def __init_subclass__(cls) -> None:
        for name in cls._names:
            setattr(cls, name, None)

    def __init__(self) -> None:
        for name in self._names:
            object.__setattr__(self, name, None)

    def __setattr__(self, name: str, value: object) -> None:
        if name not in self._names:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        kind = self._kinds.get(name)
        if kind is not None and value is not None and not isinstance(value, kind):
            raise TypeError(
                f'Property "{name}" must be of type {kind}, got: {value!r} (type: {type(value)!r})'
            )
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]


@export("data.experimental.ThreadingOptions")
class ThreadingOptions(_OptionSet):
    """How many threads a dataset may use."""

    _names = ("max_intra_op_parallelism", "private_threadpool_size")
    _kinds: ClassVar[dict[str, type]] = dict.fromkeys(_names, int)


@export("data.experimental.AutoShardPolicy")
class AutoShardPolicy(enum.IntEnum):
    """How the elements of a dataset are divided between workers."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


@export("data.experimental.DistributeOptions")
class DistributeOptions(_OptionSet):
    """How a dataset is divided between workers."""

    _names = ("auto_shard", "num_devices", "_make_stateless", "auto_shard_policy")


@export("data.experimental.MapVectorizationOptions")
class MapVectorizationOptions(_OptionSet):
    """Whether functions are to be applied to whole batches, which is done here wherever it can be."""

    _names = ("enabled", "use_choose_fastest")
    _kinds: ClassVar[dict[str, type]] = dict.fromkeys(_names, bool)


@export("data.experimental.OptimizationOptions")
class OptimizationOptions(_OptionSet):
    """Which rewritings of a dataset are wanted."""

    _names = (
        "apply_default_optimizations",
        "autotune",
        "autotune_algorithm",
        "autotune_buffers",
        "autotune_cpu_budget",
        "filter_fusion",
        "filter_with_random_uniform_fusion",
        "hoist_random_uniform",
        "map_and_batch_fusion",
        "map_and_filter_fusion",
        "map_fusion",
        "map_parallelization",
        "map_vectorization",
        "noop_elimination",
        "parallel_batch",
        "shuffle_and_repeat_fusion",
    )

    map_vectorization: MapVectorizationOptions | None

    def __init__(self) -> None:
        super().__init__()
        self.map_vectorization = MapVectorizationOptions()


@export("data.experimental.StatsOptions")
class StatsOptions(_OptionSet):
    """Which statistics of a dataset are wanted."""

    _names = ("aggregator", "prefix", "counter_prefix", "latency_all_edges")


@export("data.Options")
class Options(_OptionSet):
    """Options of a dataset, for `Dataset.with_options`."""

    _names = (
        "experimental_deterministic",
        "experimental_distribute",
        "experimental_optimization",
        "experimental_slack",
        "experimental_stats",
        "experimental_stateful_whitelist",
        "experimental_threading",
    )
    _kinds: ClassVar[dict[str, type]] = {
        "experimental_deterministic": bool,
        "experimental_distribute": DistributeOptions,
        "experimental_optimization": OptimizationOptions,
        "experimental_slack": bool,
        "experimental_stats": StatsOptions,
        "experimental_threading": ThreadingOptions,
    }
    experimental_deterministic: bool | None
    experimental_distribute: DistributeOptions | None
    experimental_optimization: OptimizationOptions | None
    experimental_slack: bool | None
    experimental_stats: StatsOptions | None
    experimental_stateful_whitelist: Any
    experimental_threading: ThreadingOptions | None

    def __init__(self) -> None:
        super().__init__()
        self.experimental_distribute = DistributeOptions()
        self.experimental_optimization = OptimizationOptions()
        self.experimental_stats = StatsOptions()
        self.experimental_threading = ThreadingOptions()

    def merge(self, options: Options) -> Options:
        """The options that either sets; ValueError where they set different values."""
        return _merged(self, options)


def _merged(mine: _W, theirs: _W) -> _W:
    both = type(mine)()
    for name in vars(mine):
        one, other = getattr(mine, name), getattr(theirs, name)
        if isinstance(one, _OptionSet) and isinstance(other, _OptionSet):
            setattr(both, name, _merged(one, other))
            continue
        if one is not None and other is not None and one != other:
            raise ValueError(
                f"Cannot merge incompatible values for field: {name} is {one} in one set of options and {other} in "
                "another. Set it once."
            )
        setattr(both, name, one if other is None else other)
    return both
