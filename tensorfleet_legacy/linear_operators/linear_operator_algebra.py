"""Functions for the adjoint, the factor, the inverse, the product or the solution, by the kinds of the operators."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from tensorfleet.graph.scopes import name_scope


class Rules:
    """The functions of one operation, by the classes of what it is applied to; the nearest ancestors' counts."""

    def __init__(self, name: str, shown: str = "") -> None:
        self._name, self._shown = name, shown or name.lower()
        self.functions: dict[tuple[type, ...], Callable] = {}

    def register(self, *kinds: type) -> Callable[[Callable], Callable]:
        """Takes a function for operators of these classes, as a decorator."""

        def take(function: Callable) -> Callable:
            if not callable(function):
                raise TypeError(f"{self._name.lower()}_fn must be callable, received: {function}")
            if kinds in self.functions:
                names = ", ".join(k.__name__ for k in kinds)
                raise ValueError(
                    f"{self._name}({names}) has already been registered to: {self.functions[kinds]}"
                )
            self.functions[kinds] = function
            return function

        return take

    def find(self, *kinds: type) -> Callable | None:
        """The function for these classes or their nearest ancestors; None when there is none."""
        lines = itertools.product(*(enumerate(kind.__mro__) for kind in kinds))
        known = [line for line in lines if tuple(ancestor for _, ancestor in line) in self.functions]
        if not known:
            return None
        nearest = min(known, key=lambda line: sum(distance for distance, _ in line))
        return self.functions[tuple(ancestor for _, ancestor in nearest)]

    def apply(self, *operators: Any, name: str | None = None) -> Any:
        """The result of the function for these operators."""
        kinds = tuple(type(operator) for operator in operators)
        function = self.find(*kinds)
        if function is None:
            between = f"{kinds[0]}.{self._shown}({kinds[1]})" if len(kinds) > 1 else str(kinds[0])
            raise ValueError(f"No {self._shown} registered for {between}")
        with name_scope(name, self._name):
            return function(*operators)


ADJOINTS = Rules("Adjoint")
CHOLESKYS = Rules("Cholesky", "cholesky decomposition")
INVERSES = Rules("Inverse")
PRODUCTS = Rules("Matmul")
SOLUTIONS = Rules("Solve")
