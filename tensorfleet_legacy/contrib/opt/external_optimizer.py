"""Minimizing with an optimizer outside of the graph: `tf.contrib.opt.ScipyOptimizerInterface`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet.base import logging
from tensorfleet.base.naming import export, find


@export("contrib.opt.ExternalOptimizerInterface")
class ExternalOptimizerInterface:
    """Hands a loss and its gradient, as functions of one long vector, to an optimizer written outside.

    A subclass defines `_minimize`. `equalities` are tensors that must become zero, `inequalities` tensors that must
    not become negative, and `var_to_bounds` gives variables their lowest and highest values.
    """

    def __init__(
        self,
        loss: Any,
        var_list: Any = None,
        equalities: Any = None,
        inequalities: Any = None,
        var_to_bounds: Any = None,
        **optimizer_kwargs: Any,
    ) -> None:
        self._loss = loss
        self._vars = find("trainable_variables")() if var_list is None else list(var_list)
        self._equalities = list(equalities or [])
        self._inequalities = list(inequalities or [])
        self.optimizer_kwargs = optimizer_kwargs
        self._shapes = [tuple(v.shape.as_list()) for v in self._vars]
        ends = np.cumsum([0, *(int(np.prod(s)) for s in self._shapes)]).tolist()
        self._slices = [slice(a, b) for a, b in itertools.pairwise(ends)]
        self._packed_bounds = self._bounds(var_to_bounds)
        self._packed_var = self._pack(self._vars)
        self._packed_loss_grad = self._gradient(loss)
        self._equality_grads = [self._gradient(e) for e in self._equalities]
        self._inequality_grads = [self._gradient(i) for i in self._inequalities]
        placeholder = find("placeholder")
        self._update_placeholders = [
            placeholder(v.dtype.base_dtype, s) for v, s in zip(self._vars, self._shapes, strict=True)
        ]
        self._var_updates = [v.assign(p) for v, p in zip(self._vars, self._update_placeholders, strict=True)]

    def _pack(self, tensors: Sequence[Any]) -> Any:
        if not tensors:
            return None
        reshape, flat = find("reshape"), [-1]
        if len(tensors) == 1:
            return reshape(tensors[0], flat)
        return find("concat")([reshape(t, flat) for t in tensors], 0)

    def _gradient(self, value: Any) -> Any:
        gradients = find("gradients")(value, self._vars)
        zeros_like = find("zeros_like")
        return self._pack(
            [zeros_like(v) if g is None else g for g, v in zip(gradients, self._vars, strict=True)]
        )

    def _bounds(self, given: Any) -> list | None:
        if given is None:
            return None
        packed: list = []
        for var, shape in zip(self._vars, self._shapes, strict=True):
            low, high = given.get(var, (-np.inf, np.inf))
            pair = [np.broadcast_to(limit, shape).ravel() for limit in (low, high)]
            packed += zip(*(p.tolist() for p in pair), strict=True)
        return packed

    def minimize(
        self,
        session: Any = None,
        feed_dict: Any = None,
        fetches: Any = None,
        step_callback: Callable | None = None,
        loss_callback: Callable | None = None,
        **run_kwargs: Any,
    ) -> None:
        """Minimizes the loss, starting from the variables' values, and assigns them the result.

        `loss_callback` gets the values of `fetches` at every evaluation, `step_callback` the vector after each step.
        """
        session = session or find("get_default_session")()
        feed_dict, fetches = feed_dict or {}, fetches or []
        loss_callback = loss_callback or (lambda *fetched: None)
        step_callback = step_callback or (lambda vector: None)

        def function(tensors: list, extra: Sequence[Any], callback: Callable) -> Callable:
            return self._function(session, tensors, extra, feed_dict, run_kwargs, callback)

        loss_grad = function([self._loss, self._packed_loss_grad], fetches, loss_callback)
        none = [
            (function([e], [], lambda *_: None), function([g], [], lambda *_: None))
            for e, g in self._equality_pairs()
        ]
        least = [
            (function([e], [], lambda *_: None), function([g], [], lambda *_: None))
            for e, g in self._inequality_pairs()
        ]
        start = session.run(self._packed_var, feed_dict=feed_dict, **run_kwargs)
        result = self._minimize(
            initial_val=np.asarray(start, np.float64),
            loss_grad_func=loss_grad,
            equality_funcs=[f for f, _ in none],
            equality_grad_funcs=[g for _, g in none],
            inequality_funcs=[f for f, _ in least],
            inequality_grad_funcs=[g for _, g in least],
            packed_bounds=self._packed_bounds,
            step_callback=step_callback,
            optimizer_kwargs=self.optimizer_kwargs,
        )
        self._set(session, result, run_kwargs)

    def _set(self, session: Any, vector: np.ndarray, options: dict) -> None:
        """Gives the variables the values of a vector."""
        values = dict(zip(self._update_placeholders, self._unpacked(vector), strict=True))
        session.run(self._var_updates, feed_dict=values, **options)

    def _equality_pairs(self) -> list:
        return list(zip(self._equalities, self._equality_grads, strict=True))

    def _inequality_pairs(self) -> list:
        return list(zip(self._inequalities, self._inequality_grads, strict=True))

    def _unpacked(self, vector: np.ndarray) -> list[np.ndarray]:
        return [vector[s].reshape(shape) for s, shape in zip(self._slices, self._shapes, strict=True)]

    def _function(
        self,
        session: Any,
        tensors: list,
        fetches: Sequence[Any],
        feeds: dict,
        options: dict,
        callback: Callable,
    ) -> Callable:
        """A function from a vector of all variables to the values of some tensors."""

        def evaluate(vector: np.ndarray) -> Any:
            self._set(session, vector, options)
            values = session.run([*tensors, *fetches], feed_dict=feeds, **options)
            callback(*values[len(tensors) :])
            doubles = [np.asarray(v, np.float64) for v in values[: len(tensors)]]
            return doubles if len(doubles) > 1 else doubles[0]

        return evaluate

    def _minimize(self, **kwargs: Any) -> np.ndarray:
        """The vector at which the loss is least; for a subclass to define."""
        raise NotImplementedError(
            "To use ExternalOptimizerInterface, subclass from it and implement _minimize()."
        )


@export("contrib.opt.ScipyOptimizerInterface")
class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """Minimizes with `scipy.optimize.minimize`: `method` is by default L-BFGS-B; other keywords are passed on."""

    _DEFAULT_METHOD = "L-BFGS-B"

    def _minimize(self, **kwargs: Any) -> np.ndarray:
        try:
            from scipy.optimize import minimize
        except ImportError as e:
            raise ImportError("ScipyOptimizerInterface needs scipy: pip install scipy.") from e
        options = dict(kwargs["optimizer_kwargs"])
        method = options.pop("method", self._DEFAULT_METHOD)
        constraints = [
            {"type": kind, "fun": function, "jac": gradient}
            for kind, functions, gradients in (
                ("eq", kwargs["equality_funcs"], kwargs["equality_grad_funcs"]),
                ("ineq", kwargs["inequality_funcs"], kwargs["inequality_grad_funcs"]),
            )
            for function, gradient in zip(functions, gradients, strict=True)
        ]
        arguments = {
            "jac": True,
            "callback": kwargs["step_callback"],
            "method": method,
            "bounds": kwargs["packed_bounds"],
        }
        if constraints:
            arguments["constraints"] = constraints
        for name in ("fun", "x0", "jac", "callback", "bounds", "constraints"):
            if name in options:
                raise ValueError(
                    f"Optimizer keyword arg {name!r} is set automatically and cannot be injected manually"
                )
        result = minimize(kwargs["loss_grad_func"], kwargs["initial_val"], **arguments, **options)
        logging.info(
            "Optimization terminated with:\n  Message: %s\n  Objective function value: %f\n  Number of iterations: %s\n"
            "  Number of functions evaluations: %s",
            result.message,
            result.fun,
            result.get("nit"),
            result.nfev,
        )
        return result["x"]
