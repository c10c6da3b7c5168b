"""The steps that run in this process now: since when, and what they wait for.

Nothing is noted when a step begins. Its frame is on the stack of its thread, and the engines know the steps that may wait.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

from tensorfleet.cluster.inspection import own_task
from tensorfleet.cluster.inspection.stats_schema import UnderWay
from tensorfleet.cluster.master.master import ClusterEngine
from tensorfleet.cluster.master.slow_steps import awaited
from tensorfleet.runtime.engine import LocalEngine

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server
    from tensorfleet.runtime.scheduling.step import ExecutionContext

_MAX_STEPS = 50
_MAX_DEPTH = 400  # of a stack that is looked through
_FILE, _BEGAN = (
    "/tensorfleet/session/session.py",
    "began",
)  # the functions there that run a step note when it began


def under_way(server: Server | None) -> list[UnderWay]:
    """The steps of this process and the stages of other tasks' steps that wait here, the oldest first."""
    result = [*_steps(), *_stages(server)]
    return sorted(result, key=lambda one: -one.seconds)[:_MAX_STEPS]


def _steps() -> Iterator[UnderWay]:
    now = time.perf_counter()
    engines = {id(engine): engine for engine in own_task.engines()}
    for frame in sys._current_frames().values():  # noqa: SLF001 - public, but for its name
        execute = _outermost(frame)
        if execute is None:
            continue
        known = execute.f_locals
        engine = engines.get(id(getattr(known.get("self"), "_engine", None)))
        began = known.get(_BEGAN)
        if engine is not None and isinstance(began, float):
            yield _step_of(engine, now - began)


def _outermost(frame: FrameType | None) -> FrameType | None:
    """The call that runs a step, among those of a thread: the outermost, for a step may run others."""
    result = None
    for _ in range(_MAX_DEPTH):
        if frame is None:
            break
        code = frame.f_code
        if _BEGAN in code.co_varnames and code.co_filename.endswith(_FILE) and _BEGAN in frame.f_locals:
            result = frame
        frame = frame.f_back
    return result


def _step_of(engine: LocalEngine | ClusterEngine, seconds: float) -> UnderWay:
    if isinstance(engine, LocalEngine):
        waits = [w for w in map(_wait_of, list(engine.running)) if w is not None]
        return UnderWay(own_task.session_name(engine), 0, seconds, waits[0][0] if len(waits) == 1 else None)
    with engine.lock:
        running = list(engine.running.values())
    # Steps of one session at the same time are told apart by when they began only roughly.
    for run in running[:1]:
        return UnderWay(engine.handle, run.number, seconds, _waits_of(engine, run))
    return UnderWay(engine.handle, 0, seconds)


def _waits_of(engine: ClusterEngine, run: object) -> str | None:
    asked: list[tuple[int, object, object]] = []
    with contextlib.suppress(RuntimeError):  # the step goes on in this moment
        asked = list(run.asked.values())  # type: ignore[attr-defined]
    words = []
    for i, at, _ in asked:
        task = own_task.label_of(at.name)  # type: ignore[attr-defined]
        queues = awaited(run.program.work[i].stage.ops)  # type: ignore[attr-defined]
        words.append(f"{', '.join(queues)} of {task}" if queues else f"the answer of {task}")
    return " and ".join(words) or None


def _wait_of(ctx: ExecutionContext) -> tuple[str, float] | None:
    return getattr(ctx, "waits_for", None)


def _stages(server: Server | None) -> Iterator[UnderWay]:
    """What waits in this task for a step of another one."""
    if server is None:
        return
    now = time.monotonic()
    for handle, engine in server.worker.engines():
        for ctx in list(engine.running):
            wait = _wait_of(ctx)
            if wait is not None:
                what, since = wait
                yield UnderWay(handle, 0, now - since, what)
