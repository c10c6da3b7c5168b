"""`tf.keras.backend.function`: a part of the graph as a function of arrays."""

from __future__ import annotations

from typing import Any

from tensorfleet.base import nest
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet_legacy.keras import backend as state

_OF_A_RUN = ("fetches", "feed_dict", "options", "run_metadata")


class Function:
    """Feeds `inputs`, runs `outputs` and then `updates`, in the session; gives the values of `outputs`.

    `fetches` are run as well, each with its value given to what `fetch_callbacks` has for it, and `feed_dict` is fed
    besides: both may be changed between calls.
    """

    def __init__(
        self, inputs: Any, outputs: Any, updates: Any, name: str | None, run: dict[str, Any]
    ) -> None:
        self.inputs, self.outputs = nest.flatten(inputs), nest.flatten(outputs)
        self.name = name
        self.updates_op = self._updated(updates or ())
        self.fetches = [find("identity")(fetch) for fetch in nest.flatten(run.get("fetches", []))]
        self.fetch_callbacks: dict[Any, Any] = {}
        self.feed_dict = run.get("feed_dict")
        self.run_options, self.run_metadata = run.get("options"), run.get("run_metadata")
        self._given_as = outputs

    def _updated(self, updates: Any) -> Any:
        with control_dependencies(self.outputs):
            done = [u[0].assign(u[1]).op for u in updates if isinstance(u, tuple)]
        done += [u.op if hasattr(u, "op") else u for u in updates if not isinstance(u, tuple)]
        return find("group")(*done)

    def __call__(self, inputs: Any) -> Any:
        fed = dict(zip(self.inputs, nest.flatten(inputs), strict=True))
        fed = {key: value for key, value in fed.items() if value is not None}
        fed.update(self._computed(fed))
        output, result, _ = state.get_session().run(
            (self.outputs, self.fetches, self.updates_op),
            {**fed, **(self.feed_dict or {})},
            options=self.run_options,
            run_metadata=self.run_metadata,
        )
        for fetch, value in zip(self.fetches, result, strict=True):
            if fetch in self.fetch_callbacks:
                self.fetch_callbacks[fetch](value)
        is_many = isinstance(self._given_as, (list, tuple))
        return nest.pack_sequence_as(self._given_as, output) if is_many else output[0]

    def _computed(self, fed: dict[Any, Any]) -> dict[Any, Any]:
        """The values of tensors that were given in place of arrays: those of one run, as they may belong together."""
        is_tensor = find("is_tensor")
        symbolic = {key: to_tensor(value) for key, value in fed.items() if is_tensor(value)}
        return state.get_session().run(symbolic) if symbolic else {}


def function(
    inputs: Any, outputs: Any, updates: Any = None, name: str | None = None, **kwargs: Any
) -> Function:
    """A function of arrays: feeds `inputs`, runs `outputs` and then `updates`, in the session.

    `fetches`, `feed_dict`, `options` and `run_metadata` go to the session's `run`.
    """
    unknown = sorted(set(kwargs) - set(_OF_A_RUN))
    if unknown:
        raise ValueError(f'Invalid argument "{unknown[0]}" passed to K.function with TensorFlow backend')
    return Function(inputs, outputs, updates, name, kwargs)
