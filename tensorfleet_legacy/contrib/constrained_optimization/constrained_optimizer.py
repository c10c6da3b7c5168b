"""`tf.contrib.constrained_optimization`: an objective with constraints, as a game of variables against multipliers."""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np

from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.base import dtypes
from tensorfleet.base.arguments import signature_of, taking
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies
from tensorfleet.ops.array.basic import group


class ConstrainedMinimizationProblem(abc.ABC):
    """An objective, and constraints that should be at most zero."""

    @property
    @abc.abstractmethod
    def objective(self) -> Any:
        """The tensor to minimize."""

    @property
    @abc.abstractmethod
    def constraints(self) -> Any:
        """A vector that should be at most zero."""

    @property
    def proxy_constraints(self) -> Any:
        """Differentiable stand-ins for constraints that have no useful gradient, or None."""
        return None

    @property
    def pre_train_ops(self) -> Any:
        """Operations to run before each step."""
        return None

    @property
    def num_constraints(self) -> int:
        """How many constraints there are."""
        shape = self.constraints.shape
        proxy = shape if self.proxy_constraints is None else self.proxy_constraints.shape
        if not (shape.is_fully_defined() and proxy.is_fully_defined()):
            raise ValueError("constraints and proxy_constraints must have fully-known shapes")
        if shape != proxy:
            raise ValueError("constraints and proxy_constraints must have the same shape")
        return int(np.prod(shape.as_list()))


# What makes a step takes the problem, and what `tf.train.Optimizer.minimize` takes besides the loss.
_STEP = signature_of(
    "minimization_problem, global_step=None, var_list=None, gate_gradients=GATE_OP, aggregation_method=None, "
    "colocate_gradients_with_ops=False, name=None, grad_loss=None",
    GATE_OP=Optimizer.GATE_OP,
)


class ConstrainedOptimizer(abc.ABC):
    """An optimizer of a problem with constraints, around an optimizer of the variables."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer

    optimizer = readonly("_optimizer", "The optimizer of the variables.")

    @abc.abstractmethod
    def _minimize_constrained(
        self, minimization_problem: Any, global_step: Any, name: Any, **options: Any
    ) -> Any: ...

    @taking(_STEP)
    def minimize_constrained(self, given: dict[str, Any]) -> Any:
        """One step towards the minimum under the constraints."""
        with control_dependencies(given["minimization_problem"].pre_train_ops or []):
            return self._minimize_constrained(**given)

    @taking(_STEP)
    def minimize_unconstrained(self, given: dict[str, Any]) -> Any:
        """One step towards the minimum of the objective alone."""
        problem = given.pop("minimization_problem")
        with control_dependencies(problem.pre_train_ops or []):
            return self._optimizer.minimize(problem.objective, **given)

    def minimize(
        self,
        minimization_problem: Any,
        unconstrained_steps: Any = None,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Any:
        """One step; the first `unconstrained_steps` are without the constraints."""
        options = locals()
        del options["self"], options["unconstrained_steps"]
        if unconstrained_steps is None:
            return self.minimize_constrained(**options)
        if global_step is None:
            raise ValueError("global_step cannot be None if unconstrained_steps is provided")
        steps = find("convert_to_tensor")(unconstrained_steps)
        return find("cond")(
            find("cast")(global_step, steps.dtype) < steps,
            lambda: group(self.minimize_unconstrained(**options)),
            lambda: group(self.minimize_constrained(**options)),
        )


class _Game(ConstrainedOptimizer):
    """The variables lower a loss; a state, from which the loss has its weights, goes up along the constraints."""

    _state_name: str

    def __init__(self, optimizer: Any, constraint_optimizer: Any = None) -> None:
        super().__init__(optimizer)
        self._constraint_optimizer = constraint_optimizer

    constraint_optimizer = readonly(
        "_constraint_optimizer", "The optimizer of the multipliers, if it is another."
    )

    @abc.abstractmethod
    def _initial_state(self, num_constraints: int) -> np.ndarray: ...

    @abc.abstractmethod
    def _loss_and_slope(
        self, state: Any, objective: Any, constraints: Any, proxies: Any
    ) -> tuple[Tensor, Tensor]: ...

    @abc.abstractmethod
    def _projected(self, state: Tensor) -> Tensor: ...

    def _minimize_constrained(
        self, minimization_problem: Any, global_step: Any, name: Any, **options: Any
    ) -> Any:
        problem = minimization_problem
        objective, constraints = problem.objective, problem.constraints
        proxies = constraints if problem.proxy_constraints is None else problem.proxy_constraints
        if len({x.dtype.base_dtype for x in (objective, constraints, proxies)}) > 1:
            raise ValueError("objective, constraints and proxy_constraints must have the same dtype")
        count = problem.num_constraints
        constraints, proxies = (find("reshape")(x, [count]) for x in (constraints, proxies))
        start = self._initial_state(count).astype(np.float32)
        state = find("Variable")(start, trainable=False, name=self._state_name)
        loss, slope = self._loss_and_slope(state, objective, constraints, proxies)
        pairs, own = self._optimizer.compute_gradients(loss, **options), [(-slope, state)]
        if self._constraint_optimizer is None:
            updates = [self._optimizer.apply_gradients(pairs + own, name="update")]
        else:
            with control_dependencies([g for g, _ in pairs + own if isinstance(g, Tensor)]):
                updates = [
                    self._optimizer.apply_gradients(pairs, name="update"),
                    self._constraint_optimizer.apply_gradients(own, name="optimizer_state_update"),
                ]
        with control_dependencies(updates), colocate_with(state.op):
            done = [state.assign(self._projected(state.read_value()), name="project")]
            if global_step is not None:
                done.append(find("assign_add")(global_step, 1, name="global_step_increment"))
            return group(*done, name=name)


def _onto_simplex(values: Tensor, total: float) -> Tensor:
    """The nearest columns without negative numbers whose sums are `total`."""
    size = values.shape.as_list()[0]
    ordered = find("reverse")(find("sort")(values, axis=0), [0])
    over = find("cumsum")(ordered, axis=0) - total
    ranks = np.arange(1, size + 1, dtype=np.float32)[:, None]
    count = find("reduce_sum")(find("cast")(ordered * ranks > over, values.dtype), 0, keepdims=True)
    last = find("cast")(find("equal")(count, ranks), values.dtype)
    level = find("reduce_sum")(over * last, 0, keepdims=True) / count
    return find("maximum")(values - level, find("zeros_like")(values))


class AdditiveExternalRegretOptimizer(_Game):
    """Multipliers that are added to, and are not negative; of a sum of at most `maximum_multiplier_radius`."""

    _state_name = "external_regret_optimizer_state"

    def __init__(
        self, optimizer: Any, constraint_optimizer: Any = None, maximum_multiplier_radius: float | None = None
    ) -> None:
        super().__init__(optimizer, constraint_optimizer)
        if maximum_multiplier_radius and maximum_multiplier_radius <= 0.0:
            raise ValueError("maximum_multiplier_radius must be strictly positive")
        self._radius = maximum_multiplier_radius

    def _initial_state(self, num_constraints: int) -> np.ndarray:
        return np.zeros([num_constraints])

    def _loss_and_slope(
        self, state: Any, objective: Any, constraints: Any, proxies: Any
    ) -> tuple[Tensor, Tensor]:
        multipliers = find("cast")(state, proxies.dtype)
        loss = objective + find("reduce_sum")(multipliers * proxies)
        return loss, find("cast")(constraints, dtypes.float32)

    def _projected(self, state: Tensor) -> Tensor:
        positive = find("maximum")(state, 0.0)
        if not self._radius:
            return positive
        bounded = _onto_simplex(find("expand_dims")(state, 1), float(self._radius))[:, 0]
        return find("where")(find("reduce_sum")(positive) > self._radius, bounded, positive)


class _SwapRegret(_Game):
    """Weights of objective and constraints that a stochastic matrix leaves as they are."""

    _state_name = "swap_regret_optimizer_state"

    @abc.abstractmethod
    def _matrix(self, state: Any) -> Tensor: ...

    def _loss_and_slope(
        self, state: Any, objective: Any, constraints: Any, proxies: Any
    ) -> tuple[Tensor, Tensor]:
        weights = _stationary(self._matrix(state))
        terms = find("concat")([find("expand_dims")(objective, 0), proxies], 0)
        loss = find("reduce_sum")(find("cast")(weights, terms.dtype) * terms)
        values = find("pad")(find("cast")(constraints, dtypes.float32), [[1, 0]])
        return loss, find("expand_dims")(values, 1) * find("expand_dims")(weights, 0)


def _stationary(matrix: Tensor, epsilon: float = 1e-6, most: int = 100) -> Tensor:
    """The distribution that a matrix of columns with sum 1 does not change."""

    def step(i: Tensor, now: Tensor, before: Tensor) -> list[Tensor]:
        after = find("matmul")(matrix, find("expand_dims")(now, 1))[:, 0]
        return [i + 1, after / find("norm")(after), now]

    start = find("ones_like")(matrix[:, 0])
    first = step(find("constant")(0), start / find("norm")(start), start)
    _, result, _ = find("while_loop")(
        lambda i, now, before: find("logical_and")(i < most, find("norm")(now - before) > epsilon),
        step,
        first,
    )
    result = find("abs")(find("stop_gradient")(result))
    return result / find("reduce_sum")(result)


class AdditiveSwapRegretOptimizer(_SwapRegret):
    """A stochastic matrix that is added to."""

    def __init__(self, optimizer: Any, constraint_optimizer: Any = None) -> None:
        super().__init__(optimizer, constraint_optimizer)

    def _initial_state(self, num_constraints: int) -> np.ndarray:
        matrix = np.zeros([num_constraints + 1] * 2)
        matrix[0] = 1
        return matrix

    def _matrix(self, state: Any) -> Tensor:
        return find("identity")(state)

    def _projected(self, state: Tensor) -> Tensor:
        return _onto_simplex(state, 1.0)


class MultiplicativeSwapRegretOptimizer(_SwapRegret):
    """A stochastic matrix that is multiplied: its logarithms are added to."""

    def __init__(
        self,
        optimizer: Any,
        constraint_optimizer: Any = None,
        minimum_multiplier_radius: float = 1e-3,
        initial_multiplier_radius: float | None = None,
    ) -> None:
        super().__init__(optimizer, constraint_optimizer)
        if not 0.0 < minimum_multiplier_radius < 1.0:
            raise ValueError("minimum_multiplier_radius must be in the range (0,1)")
        if initial_multiplier_radius is None:
            initial_multiplier_radius = minimum_multiplier_radius
        elif not minimum_multiplier_radius <= initial_multiplier_radius <= 1.0:
            raise ValueError("initial_multiplier_radius must be in the range [minimum_multiplier_radius,1]")
        self._minimum, self._initial = minimum_multiplier_radius, initial_multiplier_radius

    def _initial_state(self, num_constraints: int) -> np.ndarray:
        size = num_constraints + 1
        matrix = np.full([size, size], math.log(self._initial / size))
        matrix[0] = math.log(1.0 - self._initial * num_constraints / size)
        return matrix

    def _matrix(self, state: Any) -> Tensor:
        return find("exp")(state)

    def _projected(self, state: Tensor) -> Tensor:
        least = math.log(self._minimum / state.shape.as_list()[0])
        return find("maximum")(state - find("reduce_logsumexp")(state, 0, keepdims=True), least)


def _check_sizes(objectives: np.ndarray, constraints: np.ndarray) -> None:
    if objectives.shape != constraints.shape[1:]:
        raise ValueError(
            "objective_vector must have shape (n,), and constraints_matrix (m, n), where n is the number of candidates, "
            "and m is the number of constraints"
        )


def find_best_candidate_index(
    objective_vector: Any, constraints_matrix: Any, rank_objectives: bool = False
) -> int:
    """The candidate whose worst rank, over all constraints, is the best; of equal ones that of the least objective."""
    from scipy.stats import rankdata

    objectives, constraints = np.asarray(objective_vector), np.asarray(constraints_matrix)
    _check_sizes(objectives, constraints)
    ranks = [rankdata(np.maximum(0.0, row), method="min") for row in constraints]
    if rank_objectives:
        ranks.append(rankdata(objectives, method="min"))
    worst = np.max([np.zeros(len(objectives)), *ranks], axis=0)
    best = np.flatnonzero(worst == worst.min())
    least = best[objectives[best] == objectives[best].min()]
    return int(least[-1])


def find_best_candidate_distribution(
    objective_vector: Any, constraints_matrix: Any, epsilon: float = 0.0
) -> np.ndarray:
    """The mixture of candidates with the least objective that violates no constraint, or as little as can be."""
    if epsilon < 0.0:
        raise ValueError("epsilon must be nonnegative")
    objectives, constraints = np.asarray(objective_vector), np.asarray(constraints_matrix)
    _check_sizes(objectives, constraints)
    best = _mixture(objectives, constraints, 0.0)
    if best is not None:
        return best
    lower, upper = 0.0, float(np.min(np.max(constraints, axis=0)))
    best = _mixture(objectives, constraints, upper)
    while True:
        middle = 0.5 * (lower + upper)
        if middle - lower <= epsilon or upper - middle <= epsilon:
            break
        result = _mixture(objectives, constraints, middle)
        if result is None:
            lower = middle
        else:
            best, upper = result, middle
    assert best is not None
    return best


def _mixture(objectives: np.ndarray, constraints: np.ndarray, allowed: float) -> np.ndarray | None:
    from scipy.optimize import linprog

    bounds = np.full(len(constraints), allowed)
    ones = np.ones([1, len(objectives)])
    result = linprog(objectives, constraints, bounds, ones, [1.0], (0, None))
    return result.x if result.success else None
