"""`tf.contrib.opt`: every worker trains variables of its own, and at times they meet in the middle.

A custom getter makes, for every variable that is trained, one on the worker and one on a parameter server.
`ModelAverageOptimizer` replaces both by the mean over all workers; `ElasticAverageOptimizer` draws the two towards each
other; `AGNOptimizer` takes one step on the server with the mean of the worker's gradients, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.api.train.saveables import by_name
from tensorfleet.api.train.saver import Saver
from tensorfleet.api.train.session_run_hook import SessionRunHook
from tensorfleet.api.variables.lists import global_variables, trainable_variables
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find, publish
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.scopes import (
    GraphKeys,
    colocate_with,
    control_dependencies,
    device,
    get_default_graph,
)
from tensorfleet.ops.array.basic import group, identity

GLOBAL_VARIABLE_NAME = "global_center_variable"
_INSIDE = "contrib.opt.python.training"
for _module in ("model_average_optimizer", "elastic_average_optimizer", "agn_optimizer"):
    publish(GLOBAL_VARIABLE_NAME, f"{_INSIDE}.{_module}.GLOBAL_VARIABLE_NAME")
publish("local_center_variable", f"{_INSIDE}.elastic_average_optimizer.LOCAL_VARIABLE_NAME")
publish("grad_variable", f"{_INSIDE}.agn_optimizer.GRAD_VARIABLE_NAME")


class _Getter:
    """A custom getter that makes trained variables on the worker, and others to go with them."""

    def __init__(self, worker_device: str) -> None:
        self._worker_device = worker_device

    def __call__(
        self, getter: Callable, name: str, trainable: bool, collections: Any, *args: Any, **kwargs: Any
    ) -> Any:
        local = [GraphKeys.LOCAL_VARIABLES]
        if not trainable:
            here = GraphKeys.LOCAL_VARIABLES in (collections or ())
            with device(self._worker_device if here else _as_it_is):
                return getter(name, *args, trainable=trainable, collections=collections, **kwargs)
        with device(self._worker_device):
            own = getter(name, *args, trainable=True, collections=local, **kwargs)
        if kwargs.get("reuse") is not True:

            def make(prefix: str, where: Any, keys: list) -> Any:
                with device(where):
                    full = f"{prefix}/{name}"
                    return getter(full, *args, trainable=False, collections=keys, **kwargs)

            self._beside(own, make)
        return own

    def _beside(self, own: Any, make: Callable) -> None:
        raise AssertionError("A subclass says what goes with a variable.")

    def _local(self, make: Callable, prefix: str) -> Any:
        return make(prefix, self._worker_device, [GraphKeys.LOCAL_VARIABLES])


def _as_it_is(op: Operation) -> str:
    """A device function that changes nothing."""
    return op.device


def _pairs(own: Any, other: Any) -> Iterable[tuple[Any, Any]]:
    """A variable and the one that goes with it; their parts, when they are partitioned."""
    if hasattr(own, "op"):
        return [(own, other)]
    return zip(list(own), list(other), strict=True)


class _Hook(SessionRunHook):
    """Runs an operation when a session was made."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = build

    def begin(self) -> None:
        """Builds the operation, before the graph is closed."""
        self._op = self._build()

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._op)


class _LocalOptimizer(Optimizer):
    """Trains the worker's variables, and calls `_meet` once in a while."""

    def __init__(self, opt: Any, period: int, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._period = period
        self._local_step = find("get_variable")(
            "local_step", initializer=0, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES]
        )
        opt._prepare()

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients to the worker's variables; every so many steps these meet the others."""
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise ValueError("Must supply at least one variable")
        before = {v.op.name for v in global_variables()}
        trained = self._train(pairs)
        self._keep_local(before)
        with control_dependencies([trained]):
            counted = self._local_step.assign_add(1, use_locking=True)
        with control_dependencies([counted]):
            due = find("equal")(find("mod")(self._local_step.read_value(), self._period), 0)
        meet = self._meeting([v for _, v in pairs], global_step)

        def meet_and_say() -> Any:
            with control_dependencies([meet()]):
                return to_tensor(True)

        return group(trained, find("cond")(due, meet_and_say, lambda: to_tensor(False)))

    def _train(self, pairs: list) -> Any:
        return self._opt.apply_gradients(pairs)

    def _keep_local(self, before: set[str]) -> None:
        """Makes the optimizer's variables for the worker's variables local to the worker too."""
        everywhere = get_default_graph().get_collection_ref(GraphKeys.GLOBAL_VARIABLES)
        local = get_default_graph().get_collection_ref(GraphKeys.LOCAL_VARIABLES)
        new = [v for v in everywhere if v.op.name not in before]
        local.extend(new)
        everywhere[:] = [v for v in everywhere if v.op.name in before]

    def _meeting(self, variables: list, global_step: Any) -> Callable[[], Any]:
        """The operations of the branch that is taken every so many steps."""
        raise AssertionError("A subclass says what happens then.")


def _copied(targets: Iterable[tuple[Any, Any]]) -> Operation:
    """Gives variables the values of others."""
    copies = []
    for target, source in targets:
        with device(source.device):  # read where it is, so that it is read at this time
            value = source.read_value()
        with device(target.device):
            copies.append(target.assign(value))
    return group(*copies)


def _counted(global_step: Any) -> list:
    if global_step is None:
        return []
    with colocate_with(global_step.op):
        return [global_step.assign_add(1)]


@export("contrib.opt.ModelAverageCustomGetter")
class ModelAverageCustomGetter(_Getter):
    """Makes a variable on the worker and, wherever else it would go, one that holds the mean.

    Use it with `tf.train.replica_device_setter` and `tf.get_variable`.
    """

    def __init__(self, worker_device: str) -> None:
        super().__init__(worker_device)
        self._local_2_global: dict[Any, Any] = {}

    def _beside(self, own: Any, make: Callable) -> None:
        mean = find("Variable")(
            own.initialized_value(),
            name=f"{GLOBAL_VARIABLE_NAME}/{own.op.name}",
            trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES],
        )
        self._local_2_global[own] = mean


@export("contrib.opt.ModelAverageOptimizer")
class ModelAverageOptimizer(_LocalOptimizer):
    """Every `interval_steps`, all workers wait for each other and go on from the mean of their variables."""

    def __init__(
        self,
        opt: Any,
        num_worker: int,
        is_chief: bool,
        ma_custom_getter: ModelAverageCustomGetter,
        interval_steps: int = 100,
        use_locking: bool = True,
        name: str = "ModelAverageOptimizer",
    ) -> None:
        super().__init__(opt, interval_steps, use_locking, name)
        self._num_worker = num_worker
        self._is_chief = is_chief
        self._local_2_global = ma_custom_getter._local_2_global
        self._chief_init_op: Any = None

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients to the worker's variables; every so many steps these become the mean of all workers'."""
        if global_step is None:
            raise ValueError("Global step is required")
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _meeting(self, variables: list, global_step: Any) -> Callable[[], Any]:
        means = [self._local_2_global[v] for v in variables]
        sums, started = [], []
        for variable, mean in zip(variables, means, strict=True):
            with device(mean.device):
                shared = f"{mean.name}/var_accum"
                kind = variable.dtype.base_dtype
                total = find("ConditionalAccumulator")(kind, shape=variable.shape, shared_name=shared)
                started.append(total.set_global_step(global_step))
                sums.append(total)
        with colocate_with(global_step.op):
            tokens = find("FIFOQueue")(-1, [dtypes.bool_], shapes=[[]], shared_name="sync_queue")
        self._chief_init_op = group(*started)

        def meet() -> Any:
            step = global_step.read_value()
            parts = zip(sums, variables, strict=True)
            given = [total.apply_grad(v.read_value(), local_step=step) for total, v in parts]
            with control_dependencies(given):
                done = (
                    self._as_chief(sums, means, global_step, tokens) if self._is_chief else tokens.dequeue()
                )
            with control_dependencies([done]):
                return _copied(zip(variables, means, strict=True))

        return meet

    def _as_chief(self, sums: list, means: list, global_step: Any, tokens: Any) -> Any:
        """Waits for all workers, stores the means, and lets the others go on."""
        stored = [m.assign(s.take_grad(self._num_worker)) for s, m in zip(sums, means, strict=True)]
        with control_dependencies([*stored, *_counted(global_step)]):
            return tokens.enqueue_many(find("fill")([self._num_worker - 1], False))

    def get_init_op(self) -> Operation:
        """An operation that gives the worker's variables the values of the means."""
        return _copied((v, self._local_2_global[v]) for v in trainable_variables())

    def make_session_run_hook(self) -> SessionRunHook:
        """A hook that makes every worker start from the means."""

        def build() -> Operation:
            first = [self._chief_init_op] if self._is_chief else []
            with control_dependencies(first):
                return group(self.get_init_op(), *first)

        return _Hook(build)


@export("contrib.opt.ElasticAverageCustomGetter")
class ElasticAverageCustomGetter(_Getter):
    """Makes a variable on the worker, the centre wherever else it would go, and the worker's copy of the centre.

    Use it with `tf.train.replica_device_setter` and `tf.get_variable`.
    """

    def __init__(self, worker_device: str) -> None:
        super().__init__(worker_device)
        self._local_map: dict[Any, Any] = {}
        self._global_map: dict[Any, Any] = {}

    def _beside(self, own: Any, make: Callable) -> None:
        self._global_map.update(
            _pairs(own, make(GLOBAL_VARIABLE_NAME, _as_it_is, [GraphKeys.GLOBAL_VARIABLES]))
        )
        self._local_map.update(_pairs(own, self._local(make, "local_center_variable")))


@export("contrib.opt.ElasticAverageOptimizer")
class ElasticAverageOptimizer(_LocalOptimizer):
    """Every `communication_period` steps, the worker's variables and the centre are drawn towards each other.

    By `moving_rate` of their difference. No worker waits for another, but for the start with `synchronous`.
    """

    BETA = 0.9

    def __init__(
        self,
        opt: Any,
        num_worker: int,
        ea_custom_getter: ElasticAverageCustomGetter,
        communication_period: int = 10,
        moving_rate: float | None = None,
        rho: float | None = None,
        use_locking: bool = True,
        synchronous: bool = False,
        name: str = "ElasticAverageOptimizer",
    ) -> None:
        super().__init__(opt, communication_period, use_locking, name)
        self._num_worker = num_worker
        self._local_map = ea_custom_getter._local_map
        self._global_map = ea_custom_getter._global_map
        self._synchronous = synchronous
        usual = self.BETA / communication_period / num_worker
        self._moving_rate = usual if moving_rate is None else moving_rate
        self._rho = self._moving_rate / opt._learning_rate if rho is None else rho

    def compute_gradients(self, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The gradients of the loss and of `rho` times half the squared distance from the centre."""
        variables = var_list or trainable_variables()
        half = find("nn.l2_loss")
        distance = find("add_n")([half(to_tensor(v) - to_tensor(self._local_map[v])) for v in variables])
        return self._opt.compute_gradients(loss + self._rho * distance, variables, *args, **kwargs)

    def _meeting(self, variables: list, global_step: Any) -> Callable[[], Any]:
        copies = [(self._local_map[v], self._global_map[v]) for v in variables]

        def meet() -> Any:
            changes = []
            with control_dependencies([_copied(copies)]):
                for variable in variables:
                    with device(variable.device):
                        away = variable.read_value() - self._local_map[variable].read_value()
                        part = identity(away * self._moving_rate)
                    changes.append((variable, part))
            moved = []
            with control_dependencies([part for _, part in changes]):
                for variable, part in changes:
                    moved.append(variable.assign_sub(part))
                    moved.append(self._global_map[variable].assign_add(part))
                return group(*moved, *_counted(global_step))

        return meet

    def get_init_op(self, task_index: int) -> Operation:
        """An operation that gives the worker's variables and its copy of the centre the centre's values."""
        variables = trainable_variables()
        if not variables:
            raise ValueError(
                "There are no trainable variables: make them with an ElasticAverageCustomGetter."
            )
        centres = [(target, self._global_map[v]) for v in variables for target in (v, self._local_map[v])]
        start = _copied(centres)
        return self._all_started(start, task_index) if self._synchronous else start

    def _all_started(self, start: Operation, task_index: int) -> Operation:
        """After `start` has run on every worker."""
        queues = [
            find("FIFOQueue")(
                self._num_worker, [dtypes.bool_], [[]], shared_name=f"variable_init_sync_queue{i}"
            )
            for i in range(self._num_worker)
        ]
        with control_dependencies([start]):
            signals = [q.enqueue(False) for i, q in enumerate(queues) if i != task_index]
        return group(start, *signals, queues[task_index].dequeue_many(self._num_worker - 1))

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> SessionRunHook:
        """A hook that makes every worker start from the centre."""
        return _Hook(lambda: self.get_init_op(task_index))

    def swapping_saver(self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any) -> Saver:
        """A saver that saves the centre under the names of the worker's variables."""
        if not self._global_map:
            raise RuntimeError(
                "There is no centre yet: make variables with an ElasticAverageCustomGetter first."
            )
        result = by_name(trainable_variables() if var_list is None else var_list)

        def centre(item: Any) -> Any:
            return (
                [centre(part) for part in item]
                if isinstance(item, list)
                else self._global_map.get(item, item)
            )

        return Saver({key: centre(item) for key, item in result.items()}, name=name, **kwargs)


@export(f"{_INSIDE}.agn_optimizer.AGNCustomGetter", "contrib.opt.AGNCustomGetter")
class AGNCustomGetter(_Getter):
    """Makes a variable on the worker, the server's wherever else it would go, and a sum of the worker's gradients.

    Use it with `tf.train.replica_device_setter` and `tf.get_variable`.
    """

    def __init__(self, worker_device: str) -> None:
        super().__init__(worker_device)
        self._grad_map: dict[Any, Any] = {}
        self._global_map: dict[Any, Any] = {}

    def _beside(self, own: Any, make: Callable) -> None:
        self._global_map.update(
            _pairs(own, make(GLOBAL_VARIABLE_NAME, _as_it_is, [GraphKeys.GLOBAL_VARIABLES]))
        )
        self._grad_map.update(_pairs(own, self._local(make, "grad_variable")))


@export("contrib.opt.AGNOptimizer")
class AGNOptimizer(_LocalOptimizer):
    """Every `communication_period` steps, the server's variables take one step by the mean of the worker's gradients.

    The worker goes on from there. `optimizer` makes the steps of both.
    """

    def __init__(
        self,
        optimizer: Any,
        num_worker: int,
        custom_getter: AGNCustomGetter,
        communication_period: int = 10,
        use_locking: bool = True,
        name: str = "AGNOptimizer",
    ) -> None:
        super().__init__(optimizer, communication_period, use_locking, name)
        self._num_worker = num_worker
        self._grad_map = custom_getter._grad_map
        self._global_map = custom_getter._global_map

    def _train(self, pairs: list) -> Any:
        summed = [self._grad_map[v].assign_add(to_tensor(g)) for g, v in pairs]
        return group(self._opt.apply_gradients(pairs), *summed)

    def _meeting(self, variables: list, global_step: Any) -> Callable[[], Any]:
        servers = [self._global_map[v] for v in variables]
        with control_dependencies(None):
            self._opt._create_slots(servers)

        def meet() -> Any:
            sums = [self._grad_map[v] for v in variables]
            means = [s.read_value() / float(self._period) for s in sums]
            done = self._opt.apply_gradients(list(zip(means, servers, strict=True)))
            with control_dependencies([done]):
                emptied = [s.assign(find("zeros_like")(s.read_value())) for s in sums]
                back = _copied(zip(variables, servers, strict=True))
                return group(back, *emptied, *_counted(global_step))

        return meet

    def get_init_op(self, task_index: int) -> Operation:
        """An operation that gives the worker's variables the values of the server's."""
        variables = trainable_variables()
        emptied = [self._grad_map[v].assign(find("zeros_like")(self._grad_map[v])) for v in variables]
        return group(_copied((v, self._global_map[v]) for v in variables), *emptied)

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> SessionRunHook:
        """A hook that makes every worker start from the server's variables."""
        return _Hook(lambda: self.get_init_op(task_index))
