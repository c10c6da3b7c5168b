"""Storage of the variables of feature columns, by name."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.naming import find


class StateManager:
    """Creates the variables of columns and finds them again."""

    def create_variable(
        self,
        feature_column: Any,
        name: str,
        shape: Any,
        dtype: Any = None,
        trainable: bool = True,
        use_resource: bool = True,
        initializer: Any = None,
    ) -> Any:
        """Makes a variable of a column."""
        raise TypeError(f"{type(self).__name__} makes no variables: define create_variable in it.")

    def get_variable(self, feature_column: Any, name: str) -> Any:
        """A variable that was made for a column."""
        raise TypeError(f"{type(self).__name__} holds no variables: define get_variable in it.")


class LayerState(StateManager):
    """Makes the variables of columns as weights of a layer."""

    def __init__(self, layer: Any, trainable: bool) -> None:
        self._layer, self._trainable = layer, trainable
        self._held: dict[Any, dict[str, Any]] = {}

    def create_variable(
        self,
        feature_column: Any,
        name: str,
        shape: Any,
        dtype: Any = None,
        trainable: bool = True,
        use_resource: bool = True,
        initializer: Any = None,
    ) -> Any:
        """Makes a variable; ValueError when the column has one of that name."""
        held = self._held.setdefault(feature_column, {})
        if name in held:
            raise ValueError("Variable already exists.")
        options = {"trainable": self._trainable and trainable, "use_resource": use_resource}
        with find("variable_scope")(feature_column.name, reuse=find("AUTO_REUSE")):
            held[name] = self._layer.add_variable(
                name, shape=shape, dtype=dtype, initializer=initializer, **options
            )
        return held[name]

    def get_variable(self, feature_column: Any, name: str) -> Any:
        """A variable; ValueError when there is none of that name."""
        held = self._held.get(feature_column, {})
        if name not in held:
            raise ValueError("Variable does not exist.")
        return held[name]
