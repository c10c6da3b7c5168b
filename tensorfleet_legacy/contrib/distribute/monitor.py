"""`tf.contrib.distribute.Monitor`: steps of a strategy, one after the other."""

from __future__ import annotations

from typing import Any

from tensorfleet.base import errors
from tensorfleet.base.naming import find


class Monitor:
    """Runs a step, such as a `StandardSingleLossStep`, in a session."""

    def __init__(self, step_callable: Any, session: Any = None) -> None:
        if session is None:
            raise ValueError("Should provide a `session` in Graph mode.")
        begin, step = step_callable.initialize(), step_callable()
        session.run(begin)
        session.run(find("global_variables_initializer")())
        self._run_step = session.make_callable(step)

    def run_steps(self, num_steps: int | None = None) -> None:
        """So many steps, or as many as there are inputs for."""
        step = 0
        while num_steps is None or step < num_steps:
            try:
                self._run_step()
            except errors.OutOfRangeError:
                break
            step += 1
