"""`strategy_test_lib`: what every strategy must do, as methods that the tests of each strategy call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet.api.distribute import context
from tensorfleet.api.distribute.context import ReduceOp
from tensorfleet.api.distribute.values import select
from tensorfleet.api.variables.variable import VariableAggregation, VariableSynchronization
from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import find
from tensorfleet.graph.gradients import gradients
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet_legacy.testing.test_util import TestCase


class _TestException(Exception):
    """The error that functions of these tests raise on purpose."""


def _fail(_: Any = None) -> None:
    raise _TestException


def _merged(then: Callable) -> Callable[[], Any]:
    """A function for replicas that calls another above them."""
    return lambda: context.get_replica_context().merge_call(then)


def _called(then: Callable) -> Callable[[Any], Any]:
    """A function for above the replicas that calls another in each of them."""
    return lambda strategy: strategy.extended.call_for_each_replica(then)


class DistributionTestBase(TestCase):
    """Tests of any strategy."""

    def _test_minimize_loss_eager(self, d: Any) -> None:
        self.skipTest("The test needs eager execution, which TensorFleet does not have.")

    def _test_minimize_loss_graph(
        self, d: Any, soft_placement: bool = False, learning_rate: float = 0.2
    ) -> None:
        """The weight of a model that should give one comes nearer to one."""
        config = find("ConfigProto")(allow_soft_placement=soft_placement)
        with Graph().as_default(), self.cached_session(config=config) as session, d.scope():
            layer = find("layers.Dense")(1, use_bias=False)

            def slopes(x: Any) -> list:
                loss = find("square")(find("reshape")(layer(x), []) - 1.0)
                return list(zip(gradients(loss, layer.trainable_variables), layer.weights, strict=True))

            pairs = d.extended.call_for_each_replica(slopes, args=(find("constant")([[1.0]]),))
            before, after = self._step(d, pairs, learning_rate)
            session.run(find("global_variables_initializer")())
            seen = [session.run((before, after)) for _ in range(10)]
        self.assertLess(abs(seen[-1][1][0] - 1.0), abs(seen[0][0][0] - 1.0))

    def _step(self, d: Any, pairs: Any, rate: float) -> tuple[list, list]:
        """The values of variables before and after their gradients, those of all replicas, are applied."""
        before, after = [], []
        for slope, variable in pairs:
            before.append(d.extended.read_var(variable))
            with control_dependencies(before[-1:]):
                total = d.extended.reduce_to(ReduceOp.SUM, slope, destinations=variable)
                done = d.extended.update(
                    variable, lambda v, g: v.assign_sub(rate * g), args=(total,), group=False
                )
            with control_dependencies(done):
                after.append(d.extended.read_var(variable))
        return before, after

    def _test_replica_id(self, d: Any) -> None:
        """Every replica has a number of its own."""
        seen: list[int] = []
        with d.scope():
            d.extended.call_for_each_replica(
                lambda: seen.append(
                    int(self.evaluate(context.get_replica_context().replica_id_in_sync_group))
                )
            )
        self.assertCountEqual(seen, range(len(d.extended.worker_devices)))

    def _test_call_and_merge_exceptions(self, dist: Any) -> None:
        """An error of a function in a replica, or above the replicas, comes out of the call."""
        deeper = _merged(_called(_merged(_fail)))
        with dist.scope():
            for function in (_fail, _merged(_fail), _merged(_called(_fail)), deeper):
                with self.assertRaises(_TestException):
                    dist.extended.call_for_each_replica(function)

    def _input_fn_to_test_input_context(
        self,
        dataset_or_callable_fn: Callable,
        expected_num_replicas_in_sync: int,
        expected_num_input_pipelines: int,
        expected_input_pipeline_id: int | None,
    ) -> Callable:
        """An input function that looks at what it is told; without an expected number it is called for one after another."""
        calls = [0]

        def input_fn(input_context: Any) -> Any:
            number = calls[0] if expected_input_pipeline_id is None else expected_input_pipeline_id
            calls[0] += 1
            self.assertEqual(expected_num_replicas_in_sync, input_context.num_replicas_in_sync)
            self.assertEqual(expected_num_input_pipelines, input_context.num_input_pipelines)
            self.assertEqual(number, input_context.input_pipeline_id)
            return dataset_or_callable_fn()

        return input_fn

    def _test_input_fn_iterable(
        self, strategy: Any, input_fn: Callable, expected_values: Any, ignore_order: bool = False
    ) -> None:
        """The elements of a function's dataset, by `experimental_distribute_datasets_from_function`."""
        iterable = strategy.experimental_distribute_datasets_from_function(input_fn)
        iterator = iterable.make_initializable_iterator()
        self._test_input_fn_iterator(
            iterator, strategy.extended.worker_devices, expected_values, ignore_order=ignore_order
        )

    def _test_input_fn_iterator(
        self,
        iterator: Any,
        devices: Sequence[str],
        expected_values: Any,
        sess: Any = None,
        test_reinitialize: bool = True,
        ignore_order: bool = False,
    ) -> None:
        """Each of the devices gets what is expected for it, element by element, and then the end; once more when asked."""
        run = self.evaluate if sess is None else sess.run
        same = self.assertCountEqual if ignore_order else self.assertEqual
        element = iterator.get_next()
        parts = [select(i, element) for i in range(len(devices))]
        for again in (False, True)[: 1 + test_reinitialize]:
            run(iterator.initialize() if hasattr(iterator, "initialize") else iterator.initializer)
            for expected in expected_values:
                same(expected, run(parts))
            if not again:
                with self.assertRaises(errors.OutOfRangeError):
                    run(parts)

    def _test_global_step_update(self, strategy: Any) -> None:
        """A step that only the first replica counts is one after all have counted."""
        with strategy.scope():
            step = find("get_variable")(
                "global_step",
                shape=[],
                dtype=dtypes.int64,
                initializer=find("zeros_initializer")(),
                trainable=False,
                aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
            )
            self.evaluate(find("global_variables_initializer")())
            counted, value = strategy.extended.call_for_each_replica(
                lambda: (step.assign_add(1), step.read_value())
            )
            self.evaluate(strategy.group(counted))
            seen = self.evaluate(strategy.experimental_local_results(value))
        self.assertEqual((1,) * len(seen), tuple(seen))

    def _test_numpy_dataset(self, strategy: Any, session: Any = None, run_in_function: bool = False) -> None:
        """Arrays of all rows come back, in order and twice, from the replicas together."""
        x = np.asarray([[1, 2], [6, 12], [2, 4], [5, 10], [3, 6], [4, 8]])
        y = np.arange(6)[::-1].copy()
        with strategy.scope(), session or self.cached_session() as used:
            rows = strategy.extended.experimental_make_numpy_dataset((x, y), session=used)
            iterator = strategy.make_dataset_iterator(rows.repeat(2).batch(6))
            self.evaluate(iterator.initialize())
            parts = [
                strategy.experimental_local_results(one)
                for one in strategy.experimental_run(lambda z: z, iterator)
            ]
            for _ in range(2):
                got = [np.concatenate(one) for one in self.evaluate(parts)]
                self.assertAllEqual(x, got[0])
                self.assertAllEqual(y, got[1])
            with self.assertRaises(errors.OutOfRangeError):
                self.evaluate(parts)

    _test_numpy_iterator = _test_numpy_dataset

    def _test_trainable_variable(self, strategy: Any) -> None:
        """Variables are trained, those that are put together when read only if that is asked for."""
        read = {"synchronization": VariableSynchronization.ON_READ}
        with strategy.scope():
            for expected, options in ((True, {}), (False, read), (True, {**read, "trainable": True})):
                self.assertEqual(expected, find("Variable")(1.0, **options).trainable)


class _Together(TestCase):
    """Tests of sums over replicas."""

    _count: int

    def _inputs(self, values: Any) -> Any:
        raise AssertionError("each number of devices has its own")

    def _test_collective_comms(
        self, strategy: Any, comm_fn: Callable, inputs: Any, expected: Any, run_in_function: bool = False
    ) -> None:
        """A function of two values, given to each replica, is what is expected in all of them."""
        iterator = strategy.make_input_fn_iterator(lambda _: self._inputs(inputs))
        self.evaluate(iterator.initialize())
        results = strategy.experimental_run(comm_fn, iterator)
        outputs = self.evaluate([strategy.experimental_local_results(r) for r in results])
        for wanted, seen in zip(expected, outputs, strict=True):
            self.assertAllEqual([wanted] * self._count, seen)

    def _test_collective_comms_gradients(
        self,
        strategy: Any,
        comm_fn: Callable,
        inputs: Any,
        expected_grads: Any,
        run_in_function: bool = False,
    ) -> None:
        """The gradient of a value by what each replica put into it."""

        def step(factor: Any) -> Any:
            x = find("identity")(42.0)
            return gradients(comm_fn(x) * factor, [x])[0]

        self._expect(strategy, step, inputs, expected_grads)

    def _test_collective_comms_gradient_tape(
        self,
        strategy: Any,
        comm_fn: Callable,
        inputs: Any,
        expected_grads: Any,
        run_in_function: bool = False,
    ) -> None:
        """The same by a tape."""

        def step(factor: Any) -> Any:
            x = find("identity")(42.0)
            with find("python.eager.backprop.GradientTape")() as tape:
                tape.watch(x)
                y = comm_fn(x) * factor
            return tape.gradient(y, x)

        self._expect(strategy, step, inputs, expected_grads)

    def _expect(self, strategy: Any, step: Callable, inputs: Any, expected: Any) -> None:
        iterator = strategy.make_input_fn_iterator(lambda _: self._inputs(inputs))
        self.evaluate(iterator.initialize())
        results = strategy.experimental_local_results(strategy.experimental_run(step, iterator))
        self.assertAllEqual(expected, self.evaluate(results))


class OneDeviceDistributionTestBase(_Together):
    """Tests of a strategy with one replica."""

    _count = 1

    def _inputs(self, values: Any) -> Any:
        return find("data.Dataset").from_tensors(values)

    def _test_run(self, strategy: Any) -> None:
        """Functions of no value, of one, and of several by name."""
        four = strategy.experimental_run_v2(lambda: find("identity")(4.0))
        both = strategy.experimental_run_v2(lambda x: {"a": x * 2, "b": x * x}, args=(four,))
        last = strategy.experimental_run_v2(lambda b, a: a + 2 * b + 2, kwargs=both)
        results = [strategy.experimental_local_results(r) for r in (four, both["a"], both["b"], last)]
        self.assertAllEqual([[4.0], [8.0], [16.0], [42.0]], self.evaluate(results))

    def _test_all_reduce_sum(self, strategy: Any) -> None:
        values = (4.0, [42.0, 43.0])
        self._test_collective_comms(strategy, _all_sum, values, values)

    def _test_all_reduce_sum_gradients(self, strategy: Any) -> None:
        self._test_collective_comms_gradients(strategy, _all_sum, [4.0], [4.0])

    def _test_all_reduce_sum_gradient_tape(self, strategy: Any) -> None:
        self._test_collective_comms_gradient_tape(strategy, _all_sum, [4.0], [4.0])

    def _test_all_reduce_mean(self, strategy: Any) -> None:
        values = (2.0, [21.0, 22.0])
        self._test_collective_comms(strategy, _all_mean, values, values)

    def _test_all_reduce_mean_gradients(self, strategy: Any) -> None:
        self._test_collective_comms_gradients(strategy, _all_mean, [5.0], [5.0])

    def _test_all_reduce_mean_gradient_tape(self, strategy: Any) -> None:
        self._test_collective_comms_gradient_tape(strategy, _all_mean, [5.0], [5.0])

    def _test_device_and_input_device_are_colocated(self, strategy: Any) -> None:
        """A step, and the data it takes, run on whatever task the session is on."""
        workers, _ = find("test.create_local_cluster")(2, 0)
        iterator = strategy.make_input_fn_iterator(lambda _: find("data.Dataset").range(5))
        result = strategy.experimental_run(lambda x: x + 1, iterator)
        with find("Session")(workers[1].target) as session:
            session.run(iterator.initialize())
            session.run(result)


class TwoDeviceDistributionTestBase(_Together):
    """Tests of a strategy with two replicas."""

    _count = 2

    def _inputs(self, values: Any) -> Any:
        return find("data.Dataset").from_tensor_slices(values)

    def _test_run(self, strategy: Any, run_in_function: bool = False) -> None:
        """Functions of no value, of one, and of several by name."""
        number = lambda: context.get_replica_context().replica_id_in_sync_group + 1  # noqa: E731
        one = strategy.experimental_run_v2(number)
        both = strategy.experimental_run_v2(lambda x: {"a": x * 2, "b": x * x}, args=(one,))
        last = strategy.experimental_run_v2(lambda b, a: a + 2 * b + 2, kwargs=both)
        results = [strategy.experimental_local_results(r) for r in (one, both["a"], both["b"], last)]
        self.assertAllEqual([[1, 2], [2, 4], [1, 4], [6, 14]], self.evaluate(results))

    def _test_all_reduce_sum(self, strategy: Any, run_in_function: bool = False) -> None:
        inputs = ([1.0, 3.0], [[39.0, 2.0], [3.0, 41.0]])
        self._test_collective_comms(strategy, _all_sum, inputs, (4.0, [42.0, 43.0]))

    def _test_all_reduce_sum_gradients(self, strategy: Any, run_in_function: bool = False) -> None:
        self._test_collective_comms_gradients(strategy, _all_sum, [1.0, 3.0], [4.0, 4.0])

    def _test_all_reduce_sum_gradient_tape(self, strategy: Any, run_in_function: bool = False) -> None:
        self._test_collective_comms_gradient_tape(strategy, _all_sum, [1.0, 3.0], [4.0, 4.0])

    def _test_all_reduce_mean(self, strategy: Any, run_in_function: bool = False) -> None:
        inputs = ([1.0, 3.0], [[39.0, 2.0], [3.0, 41.0]])
        self._test_collective_comms(strategy, _all_mean, inputs, (2.0, [21.0, 21.5]))

    def _test_all_reduce_mean_gradients(self, strategy: Any, run_in_function: bool = False) -> None:
        self._test_collective_comms_gradients(strategy, _all_mean, [1.0, 3.0], [2.0, 2.0])

    def _test_all_reduce_mean_gradient_tape(self, strategy: Any, run_in_function: bool = False) -> None:
        self._test_collective_comms_gradient_tape(strategy, _all_mean, [1.0, 3.0], [2.0, 2.0])


def _all_sum(*values: Any) -> Any:
    """The sums over all replicas."""
    given = values[0] if len(values) == 1 else values
    return context.get_replica_context().all_reduce(ReduceOp.SUM, given)


def _all_mean(*values: Any) -> Any:
    """The means over all replicas."""
    given = values[0] if len(values) == 1 else values
    return context.get_replica_context().all_reduce(ReduceOp.MEAN, given)
