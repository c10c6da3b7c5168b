"""`RunOptions.debug_options`: tensors of a step written to files, in the layout that TensorFlow's debugger reads.

A tensor is in a file named by its operation, its output, the debug op and the time in microseconds. The files of a step
are under a folder for the device; the graph is beside them.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.tensor_proto import make_ndarray, make_tensor_proto

if TYPE_CHECKING:
    from tensorfleet.base.protos import DebugOptions, GraphDef
    from tensorfleet.graph.graph import Graph
    from tensorfleet.passes.plan import Plan

IDENTITY = "DebugIdentity"
DEVICE_FOLDER = "_tfdbg_device_,job_localhost,replica_0,task_0,device_CPU_0"
_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
_FILE = "file://"
_EVERY_OUTPUT = -1


class Watched:
    """What `debug_options` ask for of one step: for each tensor the debug ops and the folders."""

    def __init__(self, options: DebugOptions, plan: Plan) -> None:
        self._wanted: dict[Tensor, dict[str, list[str]]] = {}
        self._global_step = int(options.global_step)
        for watch in options.debug_tensor_watch_opts:
            folders = [_folder(url) for url in watch.debug_urls]
            for name in watch.debug_ops:
                _debug_op(name)
            for tensor in _tensors(plan, watch.node_name, watch.output_slot):
                ops = self._wanted.setdefault(tensor, {})
                for name in watch.debug_ops:
                    ops[name] = list(dict.fromkeys([*ops.get(name, ()), *folders]))

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors to fetch."""
        return list(self._wanted)

    def write(self, graph: Graph, plan: Plan, values: Sequence[Any]) -> None:
        """Writes the values of `tensors`."""
        now = time.time_ns() // 1000
        folders = dict.fromkeys(f for ops in self._wanted.values() for fs in ops.values() for f in fs)
        for number, folder in enumerate(folders):
            write_graph(folder, graph, now)
            if not number:
                write_core_metadata(folder, now, _metadata(plan, self._global_step, _run_number(folder)))
        for i, (tensor, value) in enumerate(zip(self._wanted, values, strict=True)):
            for name, places in self._wanted[tensor].items():
                for folder in places:
                    write_tensor(folder, tensor, value, now + i, name)


def _metadata(plan: Plan, global_step: int, number: int) -> dict[str, Any]:
    return {
        "global_step": global_step,
        "session_run_index": number,
        "executor_step_index": number,
        "input_names": [t.name for t in plan.feeds],
        "output_names": [t.name for t in plan.fetches],
        "target_nodes": [op.name for op in plan.targets],
    }


def _run_number(folder: str) -> int:
    return sum(name.startswith("_tfdbg_core_metadata_") for name in os.listdir(folder))


def _folder(url: str) -> str:
    if not url.startswith(_FILE):
        text = f"debug_urls must be file:// URLs, but there is {url!r}. Dump to a folder, or use `tensorfleet debug`."
        raise errors.UnimplementedError(None, None, text)
    return url.removeprefix(_FILE)


def _tensors(plan: Plan, node_name: str, slot: int) -> Iterable[Tensor]:
    """The outputs of an operation that this step computes: the debugger has nothing run that would not run anyway."""
    ops = plan.ops if node_name == "*" else [o for o in [plan.graph._by_name.get(node_name)] if o is not None]
    computed = {*plan.ops, *plan.folded, *(t._op for t in plan.feeds)}
    for op in ops:
        outputs = op._outputs if slot == _EVERY_OUTPUT else op._outputs[slot : slot + 1]
        if op in computed and op._control_flow_context is None and op not in plan.inside:
            yield from (t for t in outputs if _can_be_seen(t))


def _can_be_seen(tensor: Tensor) -> bool:
    return tensor.dtype.name not in ("resource", "variant") and tensor._op.graph.is_fetchable(tensor)


# -- debug ops ------------------------------------------------------------------------------------------------------


def _debug_op(name: str) -> Callable[[Tensor, Any], Any]:
    """What a debug op makes of a value. Its parameters, in parentheses behind the name, are not for files."""
    plain = name.partition("(")[0]
    if plain not in _DEBUG_OPS:
        raise errors.InvalidArgumentError(
            None, None, f"No debug op {plain!r}. There are {', '.join(sorted(_DEBUG_OPS))}."
        )
    return _DEBUG_OPS[plain]


def _nan_count(tensor: Tensor, value: Any) -> Any:
    array = np.asarray(value)
    return np.array([np.count_nonzero(np.isnan(array)) if array.dtype.kind in "fc" else 0], np.int64)


def _numeric_summary(tensor: Tensor, value: Any) -> Any:
    """Counts and moments in the order that TensorFlow documents for `DebugNumericSummary`."""
    array = np.asarray(value)
    numbers = array.astype(np.float64) if array.dtype.kind in "biuf" else np.zeros(0)
    finite = numbers[np.isfinite(numbers)]
    counts = [
        np.isnan(numbers).sum(),
        np.isneginf(numbers).sum(),
        (finite < 0).sum(),
        (finite == 0).sum(),
        (finite > 0).sum(),
        np.isposinf(numbers).sum(),
    ]
    moments = (
        [finite.min(), finite.max(), finite.mean(), finite.var()]
        if finite.size
        else [np.inf, -np.inf, np.nan, np.nan]
    )
    kind = [tensor.dtype.base_dtype.as_datatype_enum, array.ndim, *array.shape]
    return np.array([1, array.size, *counts, *moments, *kind], np.float64)


_DEBUG_OPS: Mapping[str, Callable[[Tensor, Any], Any]] = {
    IDENTITY: lambda tensor, value: value,
    "DebugIdentityV2": lambda tensor, value: value,
    "DebugNanCount": _nan_count,
    "DebugNumericSummary": _numeric_summary,
}


# -- files ----------------------------------------------------------------------------------------------------------


def write_graph(folder: str, graph: Graph, now: int) -> None:
    """Writes the graph beside the values of a device."""
    from tensorfleet.base.protos import Event

    device = os.path.join(folder, DEVICE_FOLDER)
    os.makedirs(device, exist_ok=True)
    graph_def: GraphDef = graph.as_graph_def()
    # The step computes in one place here: that the graph says other devices would make readers look for them.
    for node in graph_def.node:
        node.device = _DEVICE
    text = graph_def.SerializeToString(deterministic=True)
    digest = int(hashlib.sha256(text).hexdigest()[:15], 16)
    if not any(name.startswith(f"_tfdbg_graph_hash{digest}_") for name in os.listdir(device)):
        path = os.path.join(device, f"_tfdbg_graph_hash{digest}_{now}")
        _write(path, Event(wall_time=now / 1e6, graph_def=text))


def write_core_metadata(folder: str, now: int, content: Mapping[str, Any]) -> None:
    """Writes what a run was for."""
    number = int(content["session_run_index"])
    write_text(folder, f"_tfdbg_core_metadata_sessionrun{number:014d}_{now}", json.dumps(content), now)


def write_text(folder: str, name: str, text: str, now: int) -> None:
    """Writes a file with one text, as an event."""
    from tensorfleet.base.protos import Event

    event: Any = Event(wall_time=now / 1e6)
    event.log_message.message = text
    _write(os.path.join(folder, name), event)


def write_tensor(folder: str, tensor: Tensor, value: Any, now: int, debug_op: str = IDENTITY) -> None:
    """Writes what a debug op makes of a value."""
    from tensorfleet.base.protos import Event

    plain = debug_op.partition("(")[0]
    result = _debug_op(debug_op)(tensor, value)
    dtype = tensor.dtype.base_dtype if plain.startswith(IDENTITY) else None
    event: Any = Event(wall_time=now / 1e6)
    name, slot = tensor._op.name, tensor._value_index
    summary = event.summary.value.add(tag=name, node_name=f"{name}:{slot}:{plain}")
    summary.tensor.CopyFrom(_proto(result, dtype))
    scope, _, leaf = name.rpartition("/")
    device = os.path.join(folder, DEVICE_FOLDER)
    os.makedirs(os.path.join(device, scope), exist_ok=True)
    _write(os.path.join(device, scope, f"{leaf}_{slot}_{plain}_{now}"), event)


def _proto(value: Any, dtype: Any) -> Any:
    """A value as a message. TensorFlow's debugger reads numbers only from the contents, also where there is just one."""
    result = make_tensor_proto(value, dtype)
    if not (result.tensor_content or result.string_val):
        content = make_ndarray(result).tobytes()
        whole = type(result)(dtype=result.dtype, tensor_content=content)
        whole.tensor_shape.CopyFrom(result.tensor_shape)
        return whole
    return result


def _write(path: str, event: Any) -> None:
    with open(path, "wb") as file:
        file.write(event.SerializeToString())
