"""The base of `tf.keras.optimizers`: hyperparameters that are variables, slots, and one update for each variable."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.api.distribute import context as distribution
from tensorfleet.api.train.optimizer import Optimizer as TrainOptimizer
from tensorfleet.api.variables.variable import Variable, VariableAggregation, VariableSynchronization
from tensorfleet.base import dtypes, logging, nest
from tensorfleet.base.naming import find
from tensorfleet.graph.apply import apply, apply_list, apply_op
from tensorfleet.graph.gradients import gradients
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies, name_scope
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.optimizer_v2.learning_rate_schedule import LearningRateSchedule

_OPTIONS = ("clipnorm", "clipvalue", "lr", "decay")


class Optimizer:
    """Base of Keras's optimizers.

    An optimizer of your own sets its hyperparameters with `_set_hyper`, makes slots in `_create_slots` and updates
    a variable in `_resource_apply_dense(grad, var)` and `_resource_apply_sparse(grad, var, indices)`.
    """

    _is_tracked = True

    def __init__(self, name: str, **kwargs: Any) -> None:
        self._hyper: dict[str, Any] = {}
        for key, value in kwargs.items():
            if key not in _OPTIONS:
                raise TypeError(f"Unexpected keyword argument passed to optimizer: {key}")
            if value is not None and value < 0:
                raise ValueError(f"Expected {key} >= 0, received: {value}")
        self._name = name
        self._initial_decay = kwargs.get("decay") or 0.0
        for key in ("clipnorm", "clipvalue"):
            if kwargs.get(key) is not None:
                setattr(self, key, kwargs[key])
        self._own: list[Any] = []
        self._slots: dict[str, dict[str, Any]] = {}
        self._iterations: Any = None
        self._made = False

    # -- hyperparameters -----------------------------------------------------------------------------

    def _set_hyper(self, name: str, value: Any) -> None:
        """Sets a hyperparameter: a number, a tensor, a function, or a schedule."""
        before = self._hyper.get(name)
        plain = not (callable(value) or isinstance(value, (Tensor, LearningRateSchedule)))
        if plain and isinstance(before, Variable):
            state.set_value(before, value)
        else:
            self._hyper[name] = value

    def _get_hyper(self, name: str, dtype: Any = None) -> Any:
        """A hyperparameter as it is computed with."""
        self._create_hypers()
        value = self._hyper[name]
        if isinstance(value, LearningRateSchedule):
            return value
        value = value() if callable(value) and not isinstance(value, (Variable, Tensor)) else value
        return value if dtype is None else find("cast")(value, dtype)

    def __getattr__(self, name: str) -> Any:
        hyper = self.__dict__.get("_hyper", {})
        wanted = "learning_rate" if name == "lr" else name
        if wanted in hyper:
            return self._get_hyper(wanted)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        wanted = "learning_rate" if name == "lr" else name
        if wanted in self.__dict__.get("_hyper", {}):
            self._set_hyper(wanted, value)
        else:
            super().__setattr__(name, value)

    def _create_hypers(self) -> None:
        if self._made:
            return
        self._made = True
        self.iterations  # noqa: B018 - it is made first
        for name in sorted(self._hyper):
            value = self._hyper[name]
            if isinstance(value, (Tensor, Variable)) or callable(value):
                continue
            self._hyper[name] = self._variable(name, np.float32(value))

    def _variable(self, name: str, value: Any, dtype: Any = dtypes.float32) -> Any:
        result = find("Variable")(
            lambda: find("constant")(value, dtype), trainable=False, name=name, dtype=dtype, use_resource=True
        )
        state.track(result)
        return result

    def add_weight(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = "zeros",
        trainable: bool | None = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE,
    ) -> Any:
        """Makes a variable of the optimizer, which is not trained unless that is asked for."""
        from tensorfleet_legacy.keras.activations import initializer as initializer_of

        kind = dtypes.as_dtype(dtype or dtypes.float32)
        first = initializer_of(initializer)
        result = find("Variable")(
            lambda: first(list(shape), dtype=kind),
            name=name,
            dtype=kind,
            trainable=bool(trainable),
            use_resource=True,
            synchronization=synchronization,
            aggregation=aggregation,
        )
        state.track(result)
        return result

    @property
    def iterations(self) -> Any:
        """How many steps it made: a variable."""
        if self._iterations is None:
            self._iterations = self._variable("iter", 0, dtypes.int64)
            self._own.append(self._iterations)
        return self._iterations

    @iterations.setter
    def iterations(self, variable: Any) -> None:
        if self._iterations is not None:
            raise RuntimeError(
                "Cannot set `iterations` to a new Variable after the Optimizer weights have been created"
            )
        self._iterations = variable
        self._own.append(variable)

    def _decayed_lr(self, dtype: Any) -> Tensor:
        """The learning rate of this step."""
        rate = self._get_hyper("learning_rate")
        if isinstance(rate, LearningRateSchedule):
            return find("cast")(rate(find("cast")(self.iterations, dtype)), dtype)
        rate = find("cast")(rate, dtype)
        if self._initial_decay <= 0.0:
            return rate
        steps = find("cast")(self.iterations, dtype)
        return rate / (1.0 + self._get_hyper("decay", dtype) * steps)

    # -- slots ---------------------------------------------------------------------------------------

    def add_slot(self, var: Any, slot_name: str, initializer: Any = "zeros") -> Any:
        """A variable beside `var`, of its shape; made at the first call."""
        named = self._slots.setdefault(_key(var), {})
        if slot_name not in named:
            from tensorfleet_legacy.keras.activations import initializer as initializer_of

            first = initializer_of(initializer) if isinstance(initializer, str) else initializer
            kind, dims = var.dtype.base_dtype, var.shape.as_list()
            with colocate_with(var.op):
                variable = find("Variable")(
                    (lambda: first(dims, dtype=kind)) if callable(first) else first,
                    trainable=False,
                    name=f"{var.op.name}/{slot_name}",
                    dtype=kind,
                    use_resource=True,
                )
            state.track(variable)
            named[slot_name] = variable
            self._own.append(variable)
        return named[slot_name]

    def get_slot(self, var: Any, slot_name: str) -> Any:
        """The slot of that name beside `var`, or None."""
        return self._slots.get(_key(var), {}).get(slot_name)

    def get_slot_names(self) -> list[str]:
        """The names of its slots."""
        return list(dict.fromkeys(name for named in self._slots.values() for name in named))

    @property
    def weights(self) -> list:
        """The count of steps and the slots."""
        return list(self._own)

    def variables(self) -> list:
        """The same as `weights`."""
        return list(self._own)

    def get_weights(self) -> list:
        """The values of `weights`."""
        return state.get_session().run(self.weights) if self._own else []

    def set_weights(self, weights: list) -> None:
        """Gives `weights` values."""
        if len(weights) != len(self._own):
            raise ValueError(
                f'You called `set_weights(weights)` on optimizer "{self._name}" with a  weight list of length '
                f"{len(weights)}, but the optimizer was expecting {len(self._own)} weights."
            )
        for variable, value in zip(self._own, weights, strict=True):
            if tuple(variable.shape.as_list()) != np.shape(value):
                raise ValueError(
                    f"Optimizer weight shape {tuple(variable.shape.as_list())} not compatible with provided weight "
                    f"shape {np.shape(value)}"
                )
        state.batch_set_value(zip(self._own, weights, strict=True))

    # -- training ------------------------------------------------------------------------------------

    def minimize(self, loss: Any, var_list: Any, grad_loss: Any = None, name: str | None = None) -> Any:
        """An operation that updates `var_list` once to lower `loss`, a tensor or a function that gives one."""
        loss = loss() if callable(loss) else loss
        variables = nest.flatten(var_list() if callable(var_list) else var_list)
        grads = gradients(distribution.scaled_loss(loss), variables, grad_ys=grad_loss)
        return self.apply_gradients(list(zip(self._clipped(grads), variables, strict=True)), name=name)

    def get_gradients(self, loss: Any, params: Any) -> list:
        """The gradients of a loss, clipped."""
        params = nest.flatten(params)
        grads = gradients(distribution.scaled_loss(loss), params)
        for grad, param in zip(grads, params, strict=True):
            if grad is None:
                raise ValueError(
                    f"Variable {param} has `None` for gradient. Please make sure that all of your ops have a gradient "
                    "defined (i.e. are differentiable). Common ops without gradient: K.argmax, K.round, K.eval."
                )
        return self._clipped(grads)

    def _clipped(self, grads: list) -> list:
        norm, value = self.__dict__.get("clipnorm"), self.__dict__.get("clipvalue")
        if norm is not None:
            grads = [None if g is None else find("clip_by_norm")(g, norm) for g in grads]
        if value is not None:
            grads = [None if g is None else find("clip_by_value")(g, -value, value) for g in grads]
        return grads

    def get_updates(self, loss: Any, params: Any) -> list:
        """The operations of one step."""
        grads = self.get_gradients(loss, params)
        return [self.apply_gradients(list(zip(grads, nest.flatten(params), strict=True)))]

    def apply_gradients(self, grads_and_vars: Any, name: str | None = None) -> Any:
        """An operation that updates each variable by its gradient and counts the step."""
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("No gradients provided for any variable.")
        without = [v.name for g, v in pairs if g is None]
        pairs = [(g, v) for g, v in pairs if g is not None]
        if not pairs:
            raise ValueError(f"No gradients provided for any variable: {without}.")
        if without:
            logging.warning(f"Gradients do not exist for variables {without} when minimizing the loss.")
        here = distribution.current()
        if not (distribution.has_strategy() and here.strategy.extended._has_copies):
            return self._step_by(pairs, name)
        if here.replica is None:
            grads = here.strategy.extended._mean_over_workers([g for g, _ in pairs])
            return self._step_by(list(zip(grads, [v for _, v in pairs], strict=True)), name)

        def merge(strategy: Any, pairs: Any) -> Any:
            reduced = strategy.extended.batch_reduce_to(distribution.ReduceOp.SUM, pairs)
            return self._step_by(list(zip(reduced, [v for _, v in pairs], strict=True)), name)

        return here.replica.merge_call(merge, args=(pairs,))

    def _step_by(self, pairs: list, name: str | None) -> Any:
        """One step with gradients that are those of all replicas."""
        variables = [v for _, v in pairs]
        with name_scope(name or self._name) as scope:
            with control_dependencies(None):
                self._create_hypers()
                self._create_slots(variables)
            self._prepare(variables)
            updates = []
            for grad, var in pairs:
                updates += _each_copy(self._update, grad, var)
            with control_dependencies([u for u in updates if u is not None]):
                if hasattr(self.iterations, "_copies") or not hasattr(self.iterations, "handle"):
                    return find("group")(self.iterations.assign_add(1, read_value=False), name=scope)
                one = find("constant")(1, self.iterations.dtype)
                return apply_op("AssignAddVariableOp", self.iterations.handle, one, name=scope)

    def _update(self, grad: Any, var: Any) -> Any:
        if isinstance(grad, IndexedSlices):
            if var.constraint is not None:
                raise RuntimeError("Cannot use a constraint function on a sparse variable.")
            return self._resource_apply_sparse_duplicate_indices(grad.values, var, grad.indices)
        update = self._resource_apply_dense(grad, var)
        if var.constraint is None:
            return update
        with control_dependencies([update]):
            return var.assign(var.constraint(var), read_value=False)

    def _create_slots(self, var_list: list) -> None:
        """Makes the slots of these variables."""

    def _prepare(self, var_list: list) -> None:
        """Computes what all updates share."""

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        """Updates a variable by a gradient."""
        raise TypeError(f"{type(self).__name__} must define _resource_apply_dense.")

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        """Updates rows of a variable, none twice."""
        raise TypeError(f"{type(self).__name__} must define _resource_apply_sparse.")

    def _resource_apply_sparse_duplicate_indices(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        """Updates rows that may repeat: adds them up first."""
        unique, places = apply_list("Unique", indices)
        summed = apply("UnsortedSegmentSum", grad, places, apply("Shape", unique)[0])
        return self._resource_apply_sparse(summed, handle, unique)

    # -- configuration -------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """The arguments to make the same optimizer again."""
        config: dict[str, Any] = {"name": self._name}
        for key in ("clipnorm", "clipvalue"):
            if key in self.__dict__:
                config[key] = self.__dict__[key]
        return config

    def _serialize_hyperparameter(self, hyperparameter_name: str) -> Any:
        """A hyperparameter as a number."""
        value = self._hyper[hyperparameter_name]
        if isinstance(value, LearningRateSchedule):
            return {"class_name": type(value).__name__, "config": value.get_config()}
        if callable(value) and not isinstance(value, (Variable, Tensor)):
            return value()
        return state.get_value(value) if isinstance(value, (Variable, Tensor)) else value

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Optimizer:
        """An optimizer from what `get_config` gave."""
        from tensorfleet_legacy.keras.optimizer_v2 import learning_rate_schedule as schedules

        config = dict(config)
        if "lr" in config:
            config["learning_rate"] = config.pop("lr")
        if isinstance(config.get("learning_rate"), dict):
            config["learning_rate"] = schedules.deserialize(config["learning_rate"], custom_objects)
        return cls(**config)

    def _checkpoint_dependencies(self) -> Any:
        """The optimizer's entries in object checkpoints besides the slots."""
        if self._iterations is not None:
            yield "iter", self._iterations
        for name in sorted(self._hyper):
            if isinstance(self._hyper[name], Variable):
                yield name, self._hyper[name]


def _key(var: Any) -> str:
    """The name that the copies of a variable share."""
    whole = getattr(var, "_copy_of", var)
    return getattr(whole, "_primary", whole).op.name


def _each_copy(update: Any, grad: Any, var: Any) -> list:
    """The update of a variable, or of each of its copies."""

    def named(copy: Any, grad: Any) -> Any:
        with name_scope("update_" + copy.op.name.replace(":", "_")), colocate_with(copy.op):
            return update(grad, copy)

    if not hasattr(var, "_copies"):
        return [named(var, grad)]
    return list(var._distribute_strategy.extended.update(var, named, args=(grad,), group=False))


class TFOptimizer(Optimizer):
    """An optimizer of `tf.train`, as Keras uses it."""

    def __init__(self, optimizer: TrainOptimizer, iterations: Any = None) -> None:
        super().__init__(type(optimizer).__name__)
        self.optimizer = optimizer
        if iterations is not None:
            self.iterations = iterations

    def get_gradients(self, loss: Any, params: Any) -> list:
        """The gradients of a loss."""
        return [g for g, _ in self.optimizer.compute_gradients(loss, nest.flatten(params))]

    def apply_gradients(self, grads_and_vars: Any, name: str | None = None) -> Any:
        """One step of the wrapped optimizer, which counts it."""
        pairs = list(grads_and_vars)
        if distribution.has_strategy() and distribution.in_cross_replica_context():
            from tensorfleet.api.distribute.optimizing import apply_above

            result: Any = apply_above(self.optimizer, pairs, self.iterations, name)
        else:
            result = self.optimizer.apply_gradients(pairs, global_step=self.iterations, name=name)
        for variable in self.optimizer.variables():
            state.track(variable)
        return result

    def get_updates(self, loss: Any, params: Any) -> list:
        pairs = self.optimizer.compute_gradients(loss, nest.flatten(params))
        return [self.apply_gradients(pairs)]

    def _checkpoint_dependencies(self) -> Any:
        """The optimizer's entries in object checkpoints."""
        yield "optimizer", self.optimizer
        if self._iterations is not None:
            yield "iterations", self._iterations

    @property
    def weights(self) -> list:
        """Not known to Keras: the wrapped optimizer has them."""
        return []

    def get_config(self) -> dict[str, Any]:
        """Optimizers of `tf.train` have none."""
        raise TypeError(
            f"{type(self.optimizer).__name__} is an optimizer of tf.train and has no configuration: use one of "
            "tf.keras.optimizers to save the model with its optimizer."
        )
