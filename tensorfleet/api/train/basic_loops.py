"""`tf.train.basic_train_loop`: a training loop around a Supervisor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorfleet.api.train.supervisor import Supervisor
from tensorfleet.base import errors
from tensorfleet.base.naming import export


@export("train.basic_train_loop", "python.training.basic_loops.basic_train_loop")
def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    master: str = "",
) -> None:
    """Calls `train_step_fn(session, *args, **kwargs)` until the supervisor stops.

    After an AbortedError it goes on with a new session.
    """
    again = True
    while again:
        again = False
        try:
            with supervisor.managed_session(master) as sess:
                while not supervisor.should_stop():
                    train_step_fn(sess, *(args or ()), **(kwargs or {}))
        except errors.AbortedError:
            again = True
