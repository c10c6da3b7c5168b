"""User-defined types in `sess.run`: their tensors when they are fetched and fed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from tensorfleet.base.naming import export

#: Gives the tensors of an object, and a function from the list of their values to the object's value.
FetchFunction: TypeAlias = Callable[[Any], tuple[list[Any], Callable[[list[Any]], Any]]]


class Conversion(NamedTuple):
    """How a type is fetched and fed."""

    fetch: FetchFunction
    feed: Callable[[Any, Any], list[tuple[Any, Any]]] | None
    feed_tensors: Callable[[Any], list[Any]] | None

    def tensors(self, key: object) -> list[Any]:
        """The tensors that a key of this type stands for."""
        if self.feed_tensors is not None:
            return list(self.feed_tensors(key))
        if self.feed is None:
            raise TypeError(f"{type(key).__name__} cannot be fed: no feed function is registered for it.")
        return [tensor for tensor, _ in self.feed(key, None)]

    def values(self, key: object, value: object) -> list[Any]:
        """The values to feed these tensors with."""
        assert self.feed is not None
        return [part for _, part in self.feed(key, value)]


_REGISTERED: dict[type, Conversion] = {}


@export("python.client.session.register_session_run_conversion_functions")
def register_session_run_conversion_functions(
    tensor_type: type,
    fetch_function: FetchFunction,
    feed_function: Callable[[Any, Any], list[tuple[Any, Any]]] | None = None,
    feed_function_for_partial_run: Callable[[Any], list[Any]] | None = None,
) -> None:
    """Lets `sess.run` take objects of a type.

    `fetch_function(object)` gives tensors and a function from the list of their values to the object's value;
    `feed_function(object, value)` gives (tensor, value) pairs; the last one gives only the tensors.
    """
    if tensor_type in _REGISTERED:
        raise ValueError(f"{tensor_type} has already been registered so ignore it.")
    _REGISTERED[tensor_type] = Conversion(fetch_function, feed_function, feed_function_for_partial_run)


def conversion_of(item: object) -> Conversion | None:
    """The conversion that is registered for an object's type."""
    for kind, conversion in _REGISTERED.items():
        if isinstance(item, kind):
            return conversion
    return None
