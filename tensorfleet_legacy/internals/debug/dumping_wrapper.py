"""`tf.python.debug.DumpingDebugWrapperSession`: all that steps compute, written to files as TensorFlow's debugger reads them.

Each run has a folder of its own, with one for the device in it. A tensor is in a file named by its operation, its
output, what was done to it (nothing: `DebugIdentity`) and the time, in microseconds.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable
from typing import Any

from tensorfleet.api.train.session_run_hook import SessionRunArgs, SessionRunHook
from tensorfleet.base.naming import export
from tensorfleet.graph.operation import Tensor
from tensorfleet.session import debug_dumps
from tensorfleet.session.fetches import fetch_plan
from tensorfleet_legacy.internals.debug.local_cli_wrapper import WrappedSession, computed


@export("python.debug.WatchOptions", "python.debug.wrappers.framework.WatchOptions")
class WatchOptions:
    """Filters of a run's tensors: by the names and types of their operations and by their own types."""

    def __init__(
        self,
        debug_ops: Any = None,
        node_name_regex_whitelist: str | None = None,
        op_type_regex_whitelist: str | None = None,
        tensor_dtype_regex_whitelist: str | None = None,
        tolerate_debug_op_creation_failures: bool = False,
    ) -> None:
        self.debug_ops = debug_ops or [debug_dumps.IDENTITY]
        self.node_name_regex_whitelist = node_name_regex_whitelist
        self.op_type_regex_whitelist = op_type_regex_whitelist
        self.tensor_dtype_regex_whitelist = tensor_dtype_regex_whitelist
        self.tolerate_debug_op_creation_failures = tolerate_debug_op_creation_failures

    def wants(self, tensor: Tensor) -> bool:
        """Whether a tensor is of interest."""
        pairs = [
            (self.node_name_regex_whitelist, tensor.op.name),
            (self.op_type_regex_whitelist, tensor.op.type),
            (self.tensor_dtype_regex_whitelist, tensor.dtype.base_dtype.name),
        ]
        return all(pattern is None or re.match(pattern, text) for pattern, text in pairs)


class _Dumps:
    """Writes what runs compute under a folder."""

    def __init__(self, root: str, watch_fn: Callable | None) -> None:
        if os.path.isfile(root):
            raise ValueError(f"session_root path points to a file: {root}. Give a folder.")
        os.makedirs(root, exist_ok=True)
        if os.listdir(root):
            raise ValueError(
                f"session_root path points to a non-empty directory: {root}. Give one that is empty."
            )
        if watch_fn is not None and not callable(watch_fn):
            raise TypeError("watch_fn is not callable")
        self._root, self._watch_fn = root, watch_fn
        self._number = itertools.count(1)

    def watched(self, graph: Any, fetches: Any, feed_dict: Any) -> list[Tensor]:
        """The tensors of a run to write."""
        options = WatchOptions() if self._watch_fn is None else self._watch_fn(fetches, feed_dict)
        if isinstance(options, tuple):
            options = WatchOptions(*options)
        return [t for t in computed(graph, fetches, feed_dict) if options.wants(t)]

    def write(
        self, graph: Any, fetches: Any, feed_dict: Any, tensors: list[Tensor], values: list[Any]
    ) -> None:
        """Writes the folder of a run."""
        number, now = next(self._number), time.time_ns() // 1000
        folder = os.path.join(self._root, f"run_{now}_{number}")
        os.makedirs(folder)
        write_run(folder, number - 1, graph, fetches, feed_dict)
        for i, (tensor, value) in enumerate(zip(tensors, values, strict=True)):
            debug_dumps.write_tensor(folder, tensor, value, now + i)


def write_run(folder: str, number: int, graph: Any, fetches: Any, feed_dict: Any) -> None:
    """Writes the graph of a run, and what it is for."""
    now = time.time_ns() // 1000
    result, targets, _ = fetch_plan(graph, fetches, [], None)
    feeds = [str(getattr(key, "name", key)) for key in feed_dict or ()]
    core = {
        "global_step": number,
        "session_run_index": number,
        "executor_step_index": number,
        "input_names": feeds,
        "output_names": [t.name for t in result],
        "target_nodes": [op.name for op in targets],
    }
    debug_dumps.write_graph(folder, graph, now)
    debug_dumps.write_core_metadata(folder, now, core)
    debug_dumps.write_text(folder, "_tfdbg_fetches_info_", repr(fetches), now)
    debug_dumps.write_text(folder, "_tfdbg_feed_keys_info_", repr(feeds), now)


@export(
    "python.debug.DumpingDebugWrapperSession",
    "python.debug.wrappers.dumping_wrapper.DumpingDebugWrapperSession",
)
class DumpingDebugWrapperSession(WrappedSession):
    """A session that writes all that its runs compute under a folder. All else is the session's that it is made of.

    `watch_fn(fetches, feeds)` gives the `WatchOptions` of each run.
    """

    def __init__(
        self,
        sess: Any,
        session_root: str,
        watch_fn: Callable | None = None,
        thread_name_filter: str | None = None,
        pass_through_operrors: bool | None = None,
        log_usage: bool = True,
    ) -> None:
        self._session, self._dumps = sess, _Dumps(session_root, watch_fn)

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """The session's result for `fetches`."""
        graph = self._session.graph
        watched = self._dumps.watched(graph, fetches, feed_dict)
        result, values = self._session.run((fetches, watched), feed_dict, options, run_metadata)
        self._dumps.write(graph, fetches, feed_dict, watched, values)
        return result


@export("python.debug.DumpingDebugHook", "python.debug.wrappers.hooks.DumpingDebugHook")
class DumpingDebugHook(SessionRunHook):
    """Writes all that a monitored session's steps compute under a folder."""

    def __init__(
        self,
        session_root: str,
        watch_fn: Callable | None = None,
        thread_name_filter: str | None = None,
        log_usage: bool = True,
    ) -> None:
        self._dumps = _Dumps(session_root, watch_fn)

    def before_run(self, run_context: Any) -> SessionRunArgs:
        """Asks for the tensors of the step."""
        self._asked = run_context.original_args
        graph = run_context.session.graph
        self._tensors = self._dumps.watched(graph, self._asked.fetches, self._asked.feed_dict)
        return SessionRunArgs(self._tensors)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Writes them."""
        asked = self._asked
        graph = run_context.session.graph
        self._dumps.write(graph, asked.fetches, asked.feed_dict, self._tensors, run_values.results)
