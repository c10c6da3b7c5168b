"""`TF_CONFIG`: the environment variable that tells a process which cluster it is in, and as which task.

    {"cluster": {"chief": ["host:port"], "worker": [...], "ps": [...]},
     "task": {"type": "worker", "index": 0}}

Its value is this JSON, or the path of a file that holds it. Everything that wants to know asks here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tensorfleet.cluster.membership.spec import ClusterSpec

VARIABLE = "TF_CONFIG"
CHIEF, MASTER, WORKER, PS, EVALUATOR = "chief", "master", "worker", "ps", "evaluator"


@dataclass(frozen=True)
class TFConfig:
    """What `TF_CONFIG` says; empty when it is not set."""

    cluster: ClusterSpec
    task_type: str | None = None
    task_index: int | None = None
    rpc_layer: str | None = None
    environment: str | None = None
    fields: dict[str, Any] = field(default_factory=dict, compare=False)  # everything, as it was written

    @property
    def is_chief(self) -> bool:
        """Whether this task initializes and saves: the chief, or the first worker when there is none."""
        if self.task_type is None:
            return True
        if self.task_type in (CHIEF, MASTER):
            return True
        has_chief = CHIEF in self.cluster.jobs or MASTER in self.cluster.jobs
        return self.task_type == WORKER and self.task_index == 0 and not has_chief

    @property
    def address(self) -> str | None:
        """Where this task listens; None when the cluster does not have it, as with an evaluator."""
        if self.task_type not in self.cluster.jobs or self.task_index is None:
            return None
        return self.cluster.task_address(self.task_type, self.task_index)


def read(environ: Mapping[str, str] = os.environ) -> TFConfig:
    """Reads the variable; ValueError, with the place in the text, when it is malformed."""
    text = environ.get(VARIABLE, "").strip()
    if not text:
        return TFConfig(ClusterSpec({}))
    source = VARIABLE
    # JSON cannot be the path of a file that anybody makes.
    if not text.startswith(("{", "[", '"')) and os.path.exists(text):
        source = f"{VARIABLE} (file {text})"
        with open(text, encoding="utf-8") as f:
            text = f.read()
    return _checked(_parsed(text, source), source)


def _parsed(text: str, source: str) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except json.JSONDecodeError as e:
        line = text.splitlines()[e.lineno - 1] if text.splitlines() else ""
        raise ValueError(
            f"{source} is not valid JSON: {e.msg} at line {e.lineno}, column {e.colno}:\n"
            f"  {line}\n  {' ' * (e.colno - 1)}^\n"
            'It must look like {"cluster": {"ps": ["host:port"], "worker": ["host:port"]}, '
            '"task": {"type": "worker", "index": 0}}, or be the path of a file that does.'
        ) from None
    if not isinstance(fields, dict):
        raise ValueError(f"{source} must be a JSON object, not {fields!r}.")
    return fields


def _checked(fields: dict[str, Any], source: str) -> TFConfig:
    cluster, task = fields.get("cluster") or {}, fields.get("task") or {}
    for name, value in (("cluster", cluster), ("task", task)):
        if not isinstance(value, dict):
            raise ValueError(f"{name!r} in {source} must be a JSON object, not {value!r}.")
    try:
        spec = ClusterSpec(cluster)
    except TypeError as e:
        raise ValueError(f"'cluster' in {source} maps job names to lists of addresses. {e}") from None
    config = TFConfig(
        spec,
        task.get("type"),
        _index(task, source),
        fields.get("rpc_layer"),
        fields.get("environment"),
        fields,
    )
    _check_member(config, source)
    return config


def _index(task: dict[str, Any], source: str) -> int | None:
    index = task.get("index")
    if index is None:
        return None
    try:
        return int(index)
    except (TypeError, ValueError):
        raise ValueError(f"The task's 'index' in {source} must be a number, not {index!r}.") from None


def _check_member(config: TFConfig, source: str) -> None:
    """A task of a job that the cluster has must be one of its tasks."""
    job, index = config.task_type, config.task_index
    if job in config.cluster.jobs and index is not None and index not in config.cluster.task_indices(job):
        numbers = config.cluster.task_indices(job)
        raise ValueError(
            f"{source} says this is task {index} of job {job!r}, which has tasks {numbers}. Correct 'index', or add "
            "the task's address to 'cluster'."
        )
