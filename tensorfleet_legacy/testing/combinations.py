"""`combinations`, by which TensorFlow's own tests are run once for each choice of arguments.

What asks for eager execution, for version 2 or for devices that are absent is left out.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import types
import unittest
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from absl.testing import parameterized

from tensorfleet.base.naming import find


class NamedObject:
    """An object with a name for tests; it is called as the object is."""

    def __init__(self, name: str, obj: Any) -> None:
        self._name = name
        self._obj = obj

    def __getattr__(self, name: str) -> Any:
        return getattr(self._obj, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._obj(*args, **kwargs)

    def __iter__(self) -> Any:
        return iter(self._obj)

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
    result: list[OrderedDict] = [OrderedDict()]
    for more in combined:
        for first, second in itertools.product(result[:1], more[:1]):
            if both := first.keys() & second.keys():
                raise ValueError(f"Keys need to not overlap: {sorted(both)}")
        result = [OrderedDict(sorted({**a, **b}.items())) for a, b in itertools.product(result, more)]
    return result


def _runs_here(chosen: dict[str, Any]) -> bool:
    if chosen.get("mode", "graph") != "graph" or chosen.get("tf_api_version", 1) != 1:
        return False
    named = [v for v in chosen.values() if isinstance(v, NamedDistribution)]
    wanted = max([chosen.get("required_gpus") or 0, *(v.required_gpus or 0 for v in named)])
    if chosen.get("required_tpu") or any(v.required_tpu for v in named):
        return False
    return not wanted or wanted <= find("python.eager.context.num_gpus")()


def _title(chosen: dict[str, Any]) -> str:
    text = "_".join(f"{name}_{value}" for name, value in chosen.items())
    return "_test_" + "".join(c if c.isalnum() else "_" for c in text)


def generate(combinations: list, test_combinations: Any = ()) -> Callable:
    """Runs the decorated test, or each test of a class, once for each choice of arguments that can run here."""

    def decorate(test: Any) -> Any:
        if isinstance(test, type):
            return _each_of(test, decorate)
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


def _each_of(case: type, decorate: Callable) -> type:
    """A class of tests with each of its tests decorated."""
    by_name = {n: decorate(f) for n, f in vars(case).items() if n.startswith("test") and callable(f)}
    bases = (case, parameterized.TestCase)
    return types.new_class(case.__name__, bases, {}, lambda body: body.update(_apart(by_name, case)))


def _apart(made: dict[str, Any], case: type) -> dict[str, Any]:
    """The tests of a class for one that inherits from it, without those that they stand for."""
    for name in made:
        delattr(case, name)
    return {**made, "__module__": case.__module__, "__doc__": case.__doc__, "__qualname__": case.__qualname__}


def default_test_combinations() -> list[OrderedDict]:
    """The modes and versions that tests of datasets run in."""
    return combine(tf_api_version=[1, 2], mode=["eager", "graph"])


def graph_only_combinations() -> list[OrderedDict]:
    """The combinations in graph mode."""
    return combine(tf_api_version=[1, 2], mode=["graph"])


def eager_only_combinations() -> list[OrderedDict]:
    """The combinations in eager mode."""
    return combine(tf_api_version=[1, 2], mode=["eager"])


def v1_only_combinations() -> list[OrderedDict]:
    """The combinations of version 1."""
    return combine(tf_api_version=[1], mode=["eager", "graph"])


def v2_only_combinations() -> list[OrderedDict]:
    """The combinations of version 2."""
    return combine(tf_api_version=[2], mode=["eager", "graph"])
