"""`tf.keras.optimizers.schedules`: learning rates that are functions of the step."""

from __future__ import annotations

import inspect
from typing import Any

from tensorfleet.base.arguments import taking
from tensorfleet.base.naming import find


class LearningRateSchedule:
    """Base of schedules: a function of the step, that can be saved."""

    def __call__(self, step: Any) -> Any:
        """The learning rate at a step."""
        raise TypeError(f"{type(self).__name__} must define __call__(step).")

    def get_config(self) -> dict[str, Any]:
        """The arguments to make the same schedule again."""
        return {k: v for k, v in vars(self).items() if not k.startswith("_")}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LearningRateSchedule:
        """A schedule from what `get_config` gave."""
        return cls(**config)


class ExponentialDecay(LearningRateSchedule):
    """`initial_learning_rate * decay_rate ** (step / decay_steps)`; in steps, if `staircase`."""

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        decay_rate: Any,
        staircase: bool = False,
        name: str | None = None,
    ) -> None:
        self.initial_learning_rate, self.decay_steps, self.decay_rate = (
            initial_learning_rate,
            decay_steps,
            decay_rate,
        )
        self.staircase, self.name = staircase, name

    _default_name = "ExponentialDecay"

    def __call__(self, step: Any) -> Any:
        with find("name_scope")(self.name or self._default_name):
            passed = find("cast")(step, "float32") / self.decay_steps
            return self._decayed(find("floor")(passed) if self.staircase else passed)

    def _decayed(self, passed: Any) -> Any:
        """The rate after so many times `decay_steps`."""
        return self.initial_learning_rate * find("pow")(find("constant")(self.decay_rate, "float32"), passed)


class InverseTimeDecay(ExponentialDecay):
    """`initial_learning_rate / (1 + decay_rate * step / decay_steps)`; in steps, if `staircase`."""

    _default_name = "InverseTimeDecay"

    def _decayed(self, passed: Any) -> Any:
        return self.initial_learning_rate / (1.0 + self.decay_rate * passed)


class PiecewiseConstantDecay(LearningRateSchedule):
    """`values[0]` up to the first of `boundaries`, `values[1]` up to the next, and so on."""

    def __init__(self, boundaries: list, values: list, name: str | None = None) -> None:
        if len(boundaries) != len(values) - 1:
            raise ValueError("The length of boundaries should be 1 less than the length of values")
        self.boundaries, self.values, self.name = boundaries, values, name

    def __call__(self, step: Any) -> Any:
        limits = [float(b) for b in self.boundaries]
        return find("train.piecewise_constant")(find("cast")(step, "float32"), limits, self.values, self.name)


class PolynomialDecay(LearningRateSchedule):
    """From the first rate to `end_learning_rate` in `decay_steps`, along a power; over and over if `cycle`."""

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        end_learning_rate: Any = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        name: str | None = None,
    ) -> None:
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.end_learning_rate, self.power, self.cycle, self.name = end_learning_rate, power, cycle, name

    def __call__(self, step: Any) -> Any:
        return find("train.polynomial_decay")(
            self.initial_learning_rate,
            find("cast")(step, "float32"),
            float(self.decay_steps),
            self.end_learning_rate,
            self.power,
            self.cycle,
            self.name,
        )


class _Cosine(LearningRateSchedule):
    """One of the schedules along a cosine that `tf.train` has as functions, and whose arguments it takes."""

    _function: str

    def __init_subclass__(cls, function: str | None = None) -> None:
        if function is not None:
            first, _, *rest = inspect.signature(find(f"train.{function}")).parameters.values()
            own = inspect.Signature([first.replace(name="initial_learning_rate"), *rest])
            cls._function, cls.__init__ = function, taking(own)(_Cosine._keep)  # type: ignore[method-assign]

    def _keep(self, given: dict[str, Any]) -> None:
        """Keeps the arguments of a constructor."""
        vars(self).update(given)

    def __call__(self, step: Any) -> Any:
        """The learning rate at a step."""
        first, *rest = self.get_config().values()
        return find(f"train.{self._function}")(first, step, *rest)


class CosineDecay(_Cosine, function="cosine_decay"):
    """Down half a cosine in `decay_steps`, to `alpha` times the first rate."""


class CosineDecayRestarts(_Cosine, function="cosine_decay_restarts"):
    """Down half a cosine over and over, each time `t_mul` times as long and from `m_mul` times the rate."""


class LinearCosineDecay(_Cosine, function="linear_cosine_decay"):
    """A line down times a cosine of `num_periods`."""


class NoisyLinearCosineDecay(_Cosine, function="noisy_linear_cosine_decay"):
    """The same with noise, which gets less."""


_KINDS = (ExponentialDecay, InverseTimeDecay, PiecewiseConstantDecay, PolynomialDecay)
_COSINES = (CosineDecay, CosineDecayRestarts, LinearCosineDecay, NoisyLinearCosineDecay)
_CLASSES = {kind.__name__: kind for kind in (*_KINDS, *_COSINES)}


def serialize(learning_rate_schedule: Any) -> dict[str, Any]:
    """A schedule as a dictionary."""
    return {
        "class_name": type(learning_rate_schedule).__name__,
        "config": learning_rate_schedule.get_config(),
    }


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> LearningRateSchedule:
    """A schedule from what `serialize` gave."""
    known = {**_CLASSES, **(custom_objects or {})}
    if config["class_name"] not in known:
        raise ValueError(f"Unknown decay: {config['class_name']}")
    return known[config["class_name"]].from_config(config["config"])
