"""`combinations` and `strategy_combinations`, by which TensorFlow's own tests are run once for each choice of arguments.

What asks for eager execution, for version 2 or for devices that are absent is left out.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import unittest
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from absl.testing import parameterized

from tensorfleet.api import find


class NamedObject:
    """An object with a name for tests; it is called as the object is."""

    def __init__(self, name: str, obj: Any) -> None:
        self._name = name
        self._obj = obj

    def __getattr__(self, name: str) -> Any:
        return getattr(self._obj, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._obj(*args, **kwargs)

    def __repr__(self) -> str:
        return self._name


class NamedDistribution:
    """A strategy that is made when a test needs it, and the devices without which it cannot be."""

    def __init__(
        self,
        name: str,
        distribution_fn: Callable,
        required_gpus: int | None = None,
        required_tpu: bool = False,
        use_cloud_tpu: bool = False,
        **_: Any,
    ) -> None:
        self._name = name
        self._make = distribution_fn
        self.required_gpus = required_gpus
        self.required_tpu = required_tpu

    @property
    def strategy(self) -> Any:
        """The strategy."""
        return self._make()

    def __repr__(self) -> str:
        return self._name


def combine(**kwargs: Any) -> list[OrderedDict]:
    """All choices of one value for each argument; a value that is no list stands for itself."""
    names = sorted(kwargs)
    lists = [kwargs[n] if isinstance(kwargs[n], list) else [kwargs[n]] for n in names]
    return [OrderedDict(zip(names, chosen, strict=True)) for chosen in itertools.product(*lists)]


def times(*combined: list) -> list[OrderedDict]:
    """Each choice of one with each of the others; no argument may be in two of them."""
    found: list[OrderedDict] = [OrderedDict()]
    for more in combined:
        for first, second in itertools.product(found[:1], more[:1]):
            if both := first.keys() & second.keys():
                raise ValueError(f"Keys need to not overlap: {sorted(both)}")
        found = [OrderedDict(sorted({**a, **b}.items())) for a, b in itertools.product(found, more)]
    return found


def _runs_here(chosen: dict[str, Any]) -> bool:
    if chosen.get("mode", "graph") != "graph" or chosen.get("tf_api_version", 1) != 1:
        return False
    wanted = [v for v in chosen.values() if isinstance(v, NamedDistribution)]
    gpus = find("python.eager.context.num_gpus")() if any(w.required_gpus for w in wanted) else 0
    return not any(w.required_tpu or (w.required_gpus or 0) > gpus for w in wanted)


def _title(chosen: dict[str, Any]) -> str:
    text = "_".join(f"{name}_{value}" for name, value in chosen.items())
    return "_test_" + "".join(c if c.isalnum() else "_" for c in text)


def generate(combinations: list, test_combinations: Any = ()) -> Callable:
    """Runs the decorated test once for each choice of arguments that can run here."""

    def decorate(test: Callable) -> Callable:
        taken = inspect.signature(test).parameters
        anything = any(p.kind is p.VAR_KEYWORD for p in taken.values())

        @functools.wraps(test)
        def run(self: Any, **kwargs: Any) -> None:
            given = {k: v.strategy if isinstance(v, NamedDistribution) else v for k, v in kwargs.items()}
            with find("Graph")().as_default():
                test(self, **{k: v for k, v in given.items() if anything or k in taken})

        cases = [{"testcase_name": _title(c), **c} for c in combinations if _runs_here(c)]
        if not cases:
            return unittest.skip("No combination of arguments of this test can run here.")(test)
        return parameterized.named_parameters(*cases)(run)

    return decorate


def default_test_combinations() -> list[OrderedDict]:
    """The modes and versions that tests of datasets run in."""
    return combine(tf_api_version=[1, 2], mode=["eager", "graph"])


def _strategy(name: str, *args: Any) -> Callable:
    return lambda: find(f"distribute.{name}")(*args)


_TWO = ["/gpu:0", "/gpu:1"]
_MIXED = ["/gpu:0", "/cpu:0"]
STRATEGIES = {
    "default_strategy": NamedDistribution("Default", lambda: find("distribute.get_strategy")()),
    "one_device_strategy": NamedDistribution("OneDeviceCPU", _strategy("OneDeviceStrategy", "/cpu:0")),
    "one_device_strategy_gpu": NamedDistribution(
        "OneDeviceGPU", _strategy("OneDeviceStrategy", "/gpu:0"), required_gpus=1
    ),
    "mirrored_strategy_with_one_cpu": NamedDistribution(
        "Mirrored1CPU", _strategy("MirroredStrategy", ["/cpu:0"])
    ),
    "mirrored_strategy_with_one_gpu": NamedDistribution(
        "Mirrored1GPU", _strategy("MirroredStrategy", ["/gpu:0"]), required_gpus=1
    ),
    "mirrored_strategy_with_gpu_and_cpu": NamedDistribution(
        "MirroredCPUAndGPU", _strategy("MirroredStrategy", _MIXED), required_gpus=1
    ),
    "mirrored_strategy_with_two_gpus": NamedDistribution(
        "Mirrored2GPUs", _strategy("MirroredStrategy", _TWO), required_gpus=2
    ),
    "central_storage_strategy_with_two_gpus": NamedDistribution(
        "CentralStorage2GPUs", _strategy("experimental.CentralStorageStrategy", _TWO), required_gpus=2
    ),
    "central_storage_strategy_with_gpu_and_cpu": NamedDistribution(
        "CentralStorageCPUAndGPU", _strategy("experimental.CentralStorageStrategy", _MIXED), required_gpus=1
    ),
}


def _optimizer(name: str, *args: Any) -> NamedObject:
    return NamedObject(f"{name}V1", lambda: find(f"train.{name}Optimizer")(*args))


OPTIMIZERS = {
    "gradient_descent_optimizer_v1_fn": _optimizer("GradientDescent", 0.001),
    "adagrad_optimizer_v1_fn": _optimizer("Adagrad", 0.001),
    "adam_optimizer_v1_fn": _optimizer("Adam", 0.001),
    "rmsprop_optimizer_v1_fn": _optimizer("RMSProp", 0.001),
}
EVERY_STRATEGY = [STRATEGIES[n] for n in STRATEGIES if not n.startswith("central")]
EVERY_OPTIMIZER = list(OPTIMIZERS.values())
GRAPH_AND_EAGER = ["graph", "eager"]


def strategies_and_optimizers() -> list[OrderedDict]:
    """Each strategy with each optimizer of version 1."""
    return combine(distribution=EVERY_STRATEGY, optimizer_fn=EVERY_OPTIMIZER)
