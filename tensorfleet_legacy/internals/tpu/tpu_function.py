"""`tf.tpu` and the modules around it: what libraries import and ask while they build a graph where there is no TPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorfleet.api.variables.scope import VariableScope, variable_scope
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find, publish, publish_lazily, publish_module
from tensorfleet.ops.math.cast import cast

# Many libraries import these and use them only on a TPU: they are there, and say of each name that it is not.
_MODULES = """
    bfloat16 device_assignment ops ops.tpu_ops topology tpu tpu_config tpu_context tpu_estimator tpu_feed
    tpu_function tpu_optimizer tpu_system_metadata training_loop
"""
_PLACES = ("python.tpu", "contrib.tpu.python.tpu")
for _place in _PLACES:
    publish_module(_place)
    for _module in _MODULES.split():
        publish_module(f"{_place}.{_module}", "contrib.tpu")
publish_module("contrib.tpu.python.ops")
publish_module("contrib.tpu.python.ops.tpu_ops")
publish_module("tpu.experimental")
publish_lazily(lambda _: find("contrib.tpu.CrossShardOptimizer"), "tpu.CrossShardOptimizer")


@export("tpu.core")
def core(num: int) -> str:
    """The name of a core's device inside of a replica."""
    return f"device:TPU_REPLICATED_CORE:{num}"


def _widened(getter: Callable, *args: Any, **kwargs: Any) -> Any:
    """A variable that is asked for with bfloat16 keeps float32 and is read as bfloat16."""
    if kwargs["dtype"] != dtypes.bfloat16:
        return getter(*args, **kwargs)
    return cast(getter(*args, **{**kwargs, "dtype": dtypes.float32}), dtypes.bfloat16)


@export("tpu.bfloat16_scope", "contrib.tpu.bfloat16_scope")
@contextmanager
def bfloat16_scope() -> Iterator[VariableScope]:
    """Variables that are asked for with bfloat16 inside the block are float32, and read as bfloat16."""
    with variable_scope("", custom_getter=_widened) as scope:
        yield scope


class TpuContext:
    """Into how many shards the computation that is being built is divided."""

    number_of_shards: int | None = None

    def set_number_of_shards(self, number_of_shards: int | None) -> None:
        """Sets the number; None where nothing is divided."""
        self.number_of_shards = number_of_shards


_context = TpuContext()


def get_tpu_context() -> TpuContext:
    """The one context of the program."""
    return _context


@contextmanager
def tpu_shard_context(number_of_shards: int) -> Iterator[None]:
    """Divides the operations inside the block into shards."""
    if _context.number_of_shards is not None:
        raise NotImplementedError("tpu_shard_context cannot be nested.")
    _context.set_number_of_shards(number_of_shards)
    try:
        yield
    finally:
        _context.set_number_of_shards(None)


for _place in _PLACES:
    for _function in (TpuContext, get_tpu_context, tpu_shard_context):
        publish(_function, f"{_place}.tpu_function.{_function.__name__}")
    publish(bfloat16_scope, f"{_place}.bfloat16.bfloat16_scope")
