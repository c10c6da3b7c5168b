"""`tensorflow.python.ops.parallel_for.test_util`: a loop function gives the same in both kinds of loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes, nest
from tensorfleet.base.naming import find
from tensorfleet_legacy.internals.ops.parallel_for import for_loop, pfor
from tensorfleet_legacy.testing.test_util import TestCase


class PForTestCase(TestCase):
    """The base of tests that compare `pfor` with `for_loop`."""

    def _run_targets(self, targets1: Any, targets2: Any = None, run_init: bool = True) -> list:
        wanted = [*nest.flatten(targets1), *([] if targets2 is None else nest.flatten(targets2))]
        if run_init:
            self.evaluate(find("global_variables_initializer")())
        return self.evaluate(wanted)

    def run_and_assert_equal(self, targets1: Any, targets2: Any) -> None:
        """Both have the same values, in one run."""
        result = self._run_targets(targets1, targets2)
        half = len(result) // 2
        self.assertEqual(half * 2, len(result))
        for one, other in zip(result[:half], result[half:], strict=True):
            self.assertAllClose(one, other, rtol=1e-4, atol=1e-5)

    def _test_loop_fn(
        self,
        loop_fn: Callable,
        iters: Any,
        loop_fn_dtypes: Any = dtypes.float32,
        parallel_iterations: int | None = None,
    ) -> None:
        stacked = pfor(loop_fn, iters, parallel_iterations=parallel_iterations)
        looped = for_loop(loop_fn, loop_fn_dtypes, iters, parallel_iterations=parallel_iterations)
        self.run_and_assert_equal(stacked, looped)
