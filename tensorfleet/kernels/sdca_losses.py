"""The losses that stochastic dual coordinate ascent knows: each with its dual, and the best step for one example.

An example has a label, a weight, and `wx`, what the model gives for it; `norm` is its squared length, over the
strength of the regularization and times the partitions of the data.
"""

from __future__ import annotations

import math
from typing import Any

from tensorfleet.base import errors

_INFINITE = float("1.7976931348623157e308")
_NEWTON_STEPS = 10
_POISSON_STEPS = 20


class Squared:
    """`(wx - label)^2 / 2`."""

    smoothness = 1.0

    def label(self, given: float) -> float:
        """The label as the formulas take it."""
        return given

    def dual(self, label: float, weight: float, dual: float, wx: float, norm: float) -> float:
        """The dual variable of an example after the best step."""
        return dual + (label - dual - wx) / (1 + norm * weight)

    def dual_loss(self, dual: float, label: float, weight: float) -> float:
        """What the example adds to the dual problem."""
        return dual * (0.5 * dual - label) * weight

    def primal_loss(self, wx: float, label: float, weight: float) -> float:
        """What the example adds to the loss."""
        return 0.5 * (wx - label) ** 2 * weight

    def slope(self, wx: float, label: float, weight: float) -> float:
        """The derivative of the loss by `wx`."""
        return (wx - label) * weight


class _OfTwo:
    """What losses of two classes have in common: labels are -1 and 1."""

    def label(self, given: float) -> float:
        """-1 for 0, 1 for 1."""
        if given not in (0.0, 1.0):
            raise errors.invalid(
                f"Only labels of 0.0 or 1.0 are supported right now. Found example with label: {given:g}"
            )
        return 2 * given - 1


class Logistic(_OfTwo):
    """`log(1 + exp(-label * wx))`."""

    smoothness = 4.0

    def dual(self, label: float, weight: float, dual: float, wx: float, norm: float) -> float:
        """The dual variable after the best step, found by Newton's method."""
        x, pull = 0.0, norm * weight
        for _ in range(_NEWTON_STEPS):
            tanh = math.tanh(x)
            above = -2 * label * x - wx - pull * (0.5 * (1 + tanh) / label - dual)
            below = -2 * label - pull * (1 - tanh * tanh) * 0.5 / label
            x -= above / below
        return 0.5 * (1 + math.tanh(x)) / label

    def dual_loss(self, dual: float, label: float, weight: float) -> float:
        """What the example adds to the dual problem."""
        share = dual * label
        parts = (p * math.log(p) for p in (share, 1 - share) if p > 0)
        return sum(parts) * weight

    def primal_loss(self, wx: float, label: float, weight: float) -> float:
        """What the example adds to the loss."""
        right = label * wx
        if right > 0:
            return math.log1p(math.exp(-right)) * weight
        return (math.log1p(math.exp(right)) - right) * weight

    def slope(self, wx: float, label: float, weight: float) -> float:
        """The derivative of the loss by `wx`."""
        right = label * wx
        small = math.exp(-abs(right))
        return -label * weight * (small if right > 0 else 1.0) / (1 + small)


class Hinge(_OfTwo):
    """`max(0, 1 - label * wx)`."""

    smoothness = 0.0

    def dual(self, label: float, weight: float, dual: float, wx: float, norm: float) -> float:
        """The dual variable after the best step."""
        return _clipped(dual + (label - wx) / (norm * weight), label)

    def dual_loss(self, dual: float, label: float, weight: float) -> float:
        """What the example adds to the dual problem."""
        share = dual * label
        return -share * weight if 0 <= share <= 1 else _INFINITE

    def primal_loss(self, wx: float, label: float, weight: float) -> float:
        """What the example adds to the loss."""
        return max(0.0, 1 - label * wx) * weight

    def slope(self, wx: float, label: float, weight: float) -> float:
        """The derivative of the loss by `wx`."""
        return -label * weight if label * wx < 1 else 0.0


class SmoothHinge(_OfTwo):
    """A hinge whose kink is rounded off between 0 and 1."""

    smoothness = 1.0

    def dual(self, label: float, weight: float, dual: float, wx: float, norm: float) -> float:
        """The dual variable after the best step."""
        return _clipped(dual + (label - wx - dual) / (norm * weight + 1), label)

    def dual_loss(self, dual: float, label: float, weight: float) -> float:
        """What the example adds to the dual problem."""
        share = dual * label
        return (-share + 0.5 * dual * dual) * weight if 0 <= share <= 1 else _INFINITE

    def primal_loss(self, wx: float, label: float, weight: float) -> float:
        """What the example adds to the loss."""
        right = label * wx
        if right >= 1:
            return 0.0
        return (0.5 - right if right <= 0 else 0.5 * (1 - right) ** 2) * weight

    def slope(self, wx: float, label: float, weight: float) -> float:
        """The derivative of the loss by `wx`."""
        right = label * wx
        if right >= 1:
            return 0.0
        return -label * weight * (1.0 if right <= 0 else 1 - right)


def _clipped(dual: float, label: float) -> float:
    share = label * dual
    if share < 0:
        return 0.0
    return label if share > 1 else dual


class Poisson:
    """`exp(wx) - wx * label`."""

    smoothness = 1.0

    def label(self, given: float) -> float:
        """A count."""
        if given < 0:
            raise errors.invalid(
                f"Only non-negative labels can be used with the Poisson log loss. Found example with label: {given:g}"
            )
        return given

    def dual(self, label: float, weight: float, dual: float, wx: float, norm: float) -> float:
        """The dual variable after the best step, found by Newton's method."""
        rest, pull = label - dual, norm * weight
        x = math.log(rest) if rest > 0 else 0.0
        for _ in range(_POISSON_STEPS):
            power = math.exp(x)
            x -= (x - wx - pull * (rest - power)) / (1 + pull * power)
        return label - math.exp(x)

    def dual_loss(self, dual: float, label: float, weight: float) -> float:
        """What the example adds to the dual problem."""
        rest = label - dual
        if rest == 0:
            return 0.0
        return (rest * math.log(rest) - rest) * weight if rest > 0 else _INFINITE

    def primal_loss(self, wx: float, label: float, weight: float) -> float:
        """What the example adds to the loss."""
        return (math.exp(wx) - wx * label) * weight

    def slope(self, wx: float, label: float, weight: float) -> float:
        """The derivative of the loss by `wx`."""
        return (math.exp(wx) - label) * weight


LOSSES: dict[bytes, Any] = {
    b"logistic_loss": Logistic(),
    b"squared_loss": Squared(),
    b"hinge_loss": Hinge(),
    b"smooth_hinge_loss": SmoothHinge(),
    b"poisson_loss": Poisson(),
}
