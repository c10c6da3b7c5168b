"""`tf.contrib.testing`: a summary writer that remembers, and what event files say."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from tensorfleet.api.summary import writer as real
from tensorfleet.api.summary.events import summary_iterator
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.graph.graph import Graph

_INSIDE = "contrib.testing.python.framework"


@export("contrib.testing.FakeSummaryWriter", f"{_INSIDE}.fake_summary_writer.FakeSummaryWriter")
class FakeSummaryWriter:
    """Takes the place of a `tf.summary.FileWriter` in tests: keeps what is added, and writes nothing."""

    _replaced_summary_writer: Any = None

    @classmethod
    def install(cls) -> None:
        """From here on `FileWriterCache` gives writers of this class."""
        if cls._replaced_summary_writer is not None:
            raise ValueError("FakeSummaryWriter already installed.")
        cls._replaced_summary_writer = real.FileWriter
        real.FileWriter = cls  # type: ignore[assignment, misc]

    @classmethod
    def uninstall(cls) -> None:
        """Undoes `install`."""
        if cls._replaced_summary_writer is None:
            raise ValueError("FakeSummaryWriter not installed.")
        real.FileWriter = cls._replaced_summary_writer  # type: ignore[misc]
        cls._replaced_summary_writer = None

    def __init__(self, logdir: str, graph: Graph | None = None) -> None:
        self._logdir = logdir
        self._graph = graph
        self._summaries: dict[int, list] = {}
        self._added_graphs: list[Graph] = []
        self._added_meta_graphs: list = []
        self._added_session_logs: list = []
        self._added_run_metadata: dict[str, Any] = {}

    summaries = readonly("_summaries", "The `Summary` messages that were added, by step.")

    def assert_summaries(
        self,
        test_case: Any,
        expected_logdir: str | None = None,
        expected_graph: Graph | None = None,
        expected_summaries: dict[int, dict[str, float]] | None = None,
        expected_added_graphs: list | None = None,
        expected_added_meta_graphs: list | None = None,
        expected_session_logs: list | None = None,
    ) -> None:
        """Fails unless what was added is as expected; `expected_summaries` are the values by tag, by step."""
        if expected_logdir is not None:
            test_case.assertEqual(expected_logdir, self._logdir)
        if expected_graph is not None:
            test_case.assertIs(expected_graph, self._graph)
        for step, expected in (expected_summaries or {}).items():
            test_case.assertIn(step, self._summaries, f"There is no summary at step {step}.")
            by_name = {v.tag: v.simple_value for summary in self._summaries[step] for v in summary.value}
            test_case.assertEqual(expected, by_name)
        if expected_added_graphs is not None:
            test_case.assertEqual(expected_added_graphs, self._added_graphs)
        for wanted, added in (
            (expected_added_meta_graphs, self._added_meta_graphs),
            (expected_session_logs, self._added_session_logs),
        ):
            if wanted is not None:
                test_case.assertEqual(len(wanted), len(added))
                for one, other in zip(wanted, added, strict=True):
                    test_case.assertProtoEquals(one, other)

    def add_summary(self, summ: Any, current_global_step: Any = None) -> None:
        """Keeps a summary, a message or its bytes."""
        from tensorfleet.base.protos import Summary

        summary = Summary.FromString(summ) if isinstance(summ, bytes) else summ
        step = 0 if current_global_step is None else int(current_global_step)
        self._summaries.setdefault(step, []).append(summary)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Keeps a graph."""
        if global_step is not None and global_step >= 0:
            raise ValueError(f"Non-none global_step {global_step} not supported.")
        if graph_def is not None:
            raise ValueError(f"Non-none graph_def {graph_def} not supported.")
        self._added_graphs.append(graph)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Keeps a `MetaGraphDef`."""
        if global_step is not None and global_step >= 0:
            raise ValueError(f"Non-none global_step {global_step} not supported.")
        self._added_meta_graphs.append(meta_graph_def)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Keeps a `SessionLog`."""
        self._added_session_logs.append(session_log)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Keeps what a run measured, by its tag."""
        if global_step is not None and global_step < 0:
            raise ValueError(f"Negative global_step {global_step} not supported.")
        self._added_run_metadata[tag] = run_metadata

    def add_event(self, event: Any) -> None:
        """Keeps the summary of an event."""
        if event.HasField("summary"):
            self.add_summary(event.summary, event.step)

    def flush(self) -> None:
        """Does nothing."""

    def reopen(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


@export("contrib.testing.latest_event_file", f"{_INSIDE}.util_test.latest_event_file")
def latest_event_file(base_dir: str) -> str | None:
    """The event file in a folder that was changed last, or None."""
    paths = [os.path.join(base_dir, name) for name in os.listdir(base_dir) if ".tfevents." in name]
    return max(paths, key=lambda path: (os.path.getmtime(path), path), default=None)


@export("contrib.testing.latest_events", f"{_INSIDE}.util_test.latest_events")
def latest_events(base_dir: str) -> list:
    """The events of the event file that was changed last."""
    path = latest_event_file(base_dir)
    return [] if path is None else list(summary_iterator(path))


@export("contrib.testing.latest_summaries", f"{_INSIDE}.util_test.latest_summaries")
def latest_summaries(base_dir: str) -> list:
    """The events with a summary in the event file that was changed last."""
    return [event for event in latest_events(base_dir) if event.HasField("summary")]


@export("contrib.testing.simple_values_from_events", f"{_INSIDE}.util_test.simple_values_from_events")
def simple_values_from_events(events: Iterable[Any], tags: Any) -> dict[str, float]:
    """The numbers under some tags in events; a later one replaces an earlier one."""
    return {
        value.tag: value.simple_value
        for event in events
        if event.HasField("summary")
        for value in event.summary.value
        if value.tag in tags
    }


@export("contrib.testing.assert_summary", f"{_INSIDE}.util_test.assert_summary")
def assert_summary(expected_tags: Any, expected_simple_values: dict[str, float], summary_proto: Any) -> None:
    """Fails unless a summary has just these tags and, for some of them, these numbers."""
    result = {value.tag for value in summary_proto.value}
    if result != set(expected_tags):
        raise AssertionError(f"Expected tags {sorted(expected_tags)}, got {sorted(result)}.")
    for value in summary_proto.value:
        wanted = expected_simple_values.get(value.tag)
        if wanted is not None and wanted != value.simple_value:
            raise AssertionError(f"Expected {wanted} for {value.tag}, got {value.simple_value}.")


@export("contrib.testing.to_summary_proto", f"{_INSIDE}.util_test.to_summary_proto")
def to_summary_proto(summary_str: bytes) -> Any:
    """The `Summary` that bytes hold."""
    from tensorfleet.base.protos import Summary

    return Summary.FromString(summary_str)
