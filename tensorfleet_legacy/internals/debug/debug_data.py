"""`tf.python.debug.DebugDumpDir`: reads what a debugged run has written, here or in TensorFlow."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.graph.tensor_proto import make_ndarray

_DEVICE = "_tfdbg_device_"
_FILE = re.compile(r"^(.*)_(\d+)_(Debug\w+?)_(\d+)(?:-(\d+))?$")


@export("python.debug.has_inf_or_nan", "python.debug.lib.debug_data.has_inf_or_nan")
def has_inf_or_nan(datum: Any, tensor: Any) -> bool:
    """Whether a value has an infinite number in it, or one that is none."""
    kind = getattr(getattr(tensor, "dtype", None), "kind", "")
    return kind in ("f", "c") and not bool(np.all(np.isfinite(tensor)))


@export("python.debug.load_tensor_from_event_file", "python.debug.lib.debug_data.load_tensor_from_event_file")
def load_tensor_from_event_file(event_file_path: str) -> Any:
    """The value in a file of a dump, None for one without a value."""
    from tensorfleet.base.protos import Event

    event = Event.FromString(Path(event_file_path).read_bytes())
    values = event.summary.value
    return make_ndarray(values[0].tensor) if values and values[0].tensor.dtype else None


class _CoreMetadata(NamedTuple):
    global_step: int
    session_run_index: int
    executor_step_index: int
    input_names: list[str]
    output_names: list[str]
    target_nodes: list[str]


@export("python.debug.DebugTensorDatum", "python.debug.lib.debug_data.DebugTensorDatum")
class DebugTensorDatum:
    """One value of a dump: a file."""

    def __init__(self, dump_root: str, debug_dump_rel_path: str) -> None:
        path = Path(debug_dump_rel_path)
        match = _FILE.match(path.name)
        if match is None:
            raise ValueError(
                f"{debug_dump_rel_path} is not the name of a dumped tensor: NODE_SLOT_DEBUGOP_TIME."
            )
        device, *scope = path.parts[:-1]
        self._path = Path(dump_root) / path
        self._device = _device_name(device)
        self._node = "/".join([*scope, match[1]])
        self._slot, self._op = int(match[2]), match[3]
        self._time, self._more = int(match[4]), match[5]

    device_name = property(lambda self: self._device, doc="The device.")
    node_name = property(lambda self: self._node, doc="The name of the operation.")
    output_slot = property(lambda self: self._slot, doc="Which output of it.")
    debug_op = property(lambda self: self._op, doc="What the value was made by.")
    timestamp = property(lambda self: self._time, doc="When, in microseconds.")
    file_path = property(lambda self: str(self._path), doc="The file.")

    @property
    def extended_timestamp(self) -> str:
        """The time, with a number behind it if several values came at once."""
        return f"{self._time}-{self._more}" if self._more else str(self._time)

    @property
    def tensor_name(self) -> str:
        """The name of the tensor."""
        return f"{self._node}:{self._slot}"

    @property
    def watch_key(self) -> str:
        """The name of the tensor with the debug op."""
        return f"{self.tensor_name}:{self._op}"

    @property
    def dump_size_bytes(self) -> int:
        """The size of the file."""
        return self._path.stat().st_size

    def get_tensor(self) -> Any:
        """The value."""
        return load_tensor_from_event_file(str(self._path))

    def __str__(self) -> str:
        return f"{{DebugTensorDatum ({self._device}) {self.watch_key} @ {self._time}}}"

    __repr__ = __str__


@export("python.debug.DebugDumpDir", "python.debug.lib.debug_data.DebugDumpDir")
class DebugDumpDir:
    """The folder of a debugged run."""

    def __init__(self, dump_root: str, partition_graphs: Any = None, validate: bool = True) -> None:
        root = Path(dump_root)
        if not root.is_dir():
            raise OSError(f"Dump root directory {dump_root} does not exist")
        self._root = root
        devices = sorted(p for p in root.iterdir() if p.is_dir() and p.name.startswith(_DEVICE))
        self._data = sorted(
            (
                DebugTensorDatum(str(root), str(path.relative_to(root)))
                for device in devices
                for path in device.rglob("*")
                if path.is_file() and not path.name.startswith("_tfdbg_") and _FILE.match(path.name)
            ),
            key=lambda d: (d.timestamp, d.extended_timestamp),
        )
        self._devices = [_device_name(d.name) for d in devices]
        self._graphs = list(partition_graphs or self._read_graphs(devices))
        self._nodes = {n.name: n for g in self._graphs for n in g.node if not n.name.startswith("__")}
        self._python_graph: Any = None

    def _read_graphs(self, devices: list[Path]) -> Iterator[Any]:
        from tensorfleet.base.protos import Event, GraphDef

        for device in devices:
            paths = sorted(device.glob("_tfdbg_graph_hash*"), key=lambda p: int(p.name.rpartition("_")[2]))
            if paths:
                yield GraphDef.FromString(Event.FromString(paths[-1].read_bytes()).graph_def)

    # -- the run --------------------------------------------------------------------------------------

    @property
    def core_metadata(self) -> Any:
        """What the run was for; a list if several runs wrote here."""
        paths = sorted(self._root.glob("_tfdbg_core_metadata_*"))
        found = []
        for path in paths:
            content = json.loads(_text(path))
            found.append(_CoreMetadata(**{name: content[name] for name in _CoreMetadata._fields}))
        return found[0] if len(found) == 1 else found or None

    @property
    def run_fetches_info(self) -> str | None:
        """The fetches of the run, as text."""
        path = self._root / "_tfdbg_fetches_info_"
        return _text(path) if path.exists() else None

    @property
    def run_feed_keys_info(self) -> str | None:
        """The fed tensors of the run, as text."""
        path = self._root / "_tfdbg_feed_keys_info_"
        return _text(path) if path.exists() else None

    def devices(self) -> list[str]:
        """The devices with dumps."""
        return list(self._devices)

    # -- values ---------------------------------------------------------------------------------------

    @property
    def dumped_tensor_data(self) -> list[DebugTensorDatum]:
        """All values, by time."""
        return list(self._data)

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self._data)

    @property
    def t0(self) -> int | None:
        """The time of the first value, in microseconds."""
        return self._data[0].timestamp if self._data else None

    def _of(self, node_name: str, output_slot: int, debug_op: str) -> list[DebugTensorDatum]:
        key = f"{node_name}:{output_slot}:{debug_op}"
        found = self.watch_key_to_data(key)
        if not found:
            raise KeyError(f'Watch key "{key}" does not exist in the debug dump of {self._root}')
        return found

    def watch_key_to_data(
        self, debug_watch_key: str, device_name: str | None = None
    ) -> list[DebugTensorDatum]:
        """The values of a watch key, by time."""
        return [
            d for d in self._data if d.watch_key == debug_watch_key and device_name in (None, d.device_name)
        ]

    def debug_watch_keys(self, node_name: str, device_name: str | None = None) -> list[str]:
        """The watch keys of an operation."""
        return list(dict.fromkeys(d.watch_key for d in self._data if d.node_name == node_name))

    def get_tensors(
        self, node_name: str, output_slot: int, debug_op: str, device_name: str | None = None
    ) -> list[Any]:
        """The values of a tensor, by time."""
        return [d.get_tensor() for d in self._of(node_name, output_slot, debug_op)]

    def get_tensor_file_paths(
        self, node_name: str, output_slot: int, debug_op: str, device_name: str | None = None
    ) -> list[str]:
        """The files of a tensor, by time."""
        return [d.file_path for d in self._of(node_name, output_slot, debug_op)]

    def get_rel_timestamps(
        self, node_name: str, output_slot: int, debug_op: str, device_name: str | None = None
    ) -> list[int]:
        """The times of a tensor since the first value, in microseconds."""
        return [d.timestamp - (self.t0 or 0) for d in self._of(node_name, output_slot, debug_op)]

    def get_dump_sizes_bytes(
        self, node_name: str, output_slot: int, debug_op: str, device_name: str | None = None
    ) -> list[int]:
        """The sizes of the files of a tensor, by time."""
        return [d.dump_size_bytes for d in self._of(node_name, output_slot, debug_op)]

    def find(
        self,
        predicate: Callable[[DebugTensorDatum, Any], Any],
        first_n: int = 0,
        device_name: str | None = None,
        exclude_node_names: str | None = None,
    ) -> list[DebugTensorDatum]:
        """The values for which `predicate(datum, value)` holds, by time; at most `first_n` if that is given."""
        found: list[DebugTensorDatum] = []
        for datum in self._data:
            if exclude_node_names and re.match(exclude_node_names, datum.node_name):
                continue
            if device_name in (None, datum.device_name) and predicate(datum, datum.get_tensor()):
                found.append(datum)
                if first_n > 0 and len(found) >= first_n:
                    break
        return found

    # -- the graph ------------------------------------------------------------------------------------

    def loaded_partition_graphs(self) -> bool:
        """Whether the graph is there."""
        return bool(self._graphs)

    def partition_graphs(self) -> list[Any]:
        """The graph of each device, as GraphDefs."""
        if not self._graphs:
            raise LookupError("No partition graphs have been loaded.")
        return list(self._graphs)

    def _node(self, name: str) -> Any:
        if name not in self._nodes:
            raise errors.NotFoundError(
                None, None, f"Node '{name}' is not found in the graphs of {self._root}."
            )
        return self._nodes[name]

    def nodes(self, device_name: str | None = None) -> list[str]:
        """The names of the operations."""
        return list(self._nodes)

    def node_exists(self, node_name: str, device_name: str | None = None) -> bool:
        """Whether there is an operation of that name."""
        return node_name in self._nodes

    def node_op_type(self, node_name: str, device_name: str | None = None) -> str:
        """The type of an operation."""
        return str(self._node(node_name).op)

    def node_attributes(self, node_name: str, device_name: str | None = None) -> Any:
        """The attributes of an operation."""
        return self._node(node_name).attr

    def node_device(self, node_name: str) -> str:
        """The device of an operation."""
        return str(self._node(node_name).device)

    def node_inputs(
        self, node_name: str, is_control: bool = False, device_name: str | None = None
    ) -> list[str]:
        """The operations whose values an operation takes, or those it comes after."""
        return [n for n, control in map(_input, self._node(node_name).input) if control == is_control]

    def node_recipients(
        self, node_name: str, is_control: bool = False, device_name: str | None = None
    ) -> list[str]:
        """The operations that take the values of an operation, or come after it."""
        self._node(node_name)
        return [name for name in self._nodes if node_name in self.node_inputs(name, is_control)]

    def transitive_inputs(
        self,
        node_name: str,
        include_control: bool = True,
        include_reversed_ref: bool = False,
        device_name: Any = None,
    ) -> list[str]:
        """All operations that an operation depends on, the nearest first."""
        found: dict[str, None] = {}
        waiting = [node_name]
        while waiting:
            name = waiting.pop(0)
            near = self.node_inputs(name) + (
                self.node_inputs(name, is_control=True) if include_control else []
            )
            fresh = [n for n in near if n not in found and n in self._nodes and n != node_name]
            found.update(dict.fromkeys(fresh))
            waiting += fresh
        return list(found)

    def set_python_graph(self, python_graph: Any) -> None:
        """Gives the graph of the program, which knows the lines of the operations."""
        self._python_graph = python_graph

    @property
    def python_graph(self) -> Any:
        """The graph of the program, if it was given."""
        return self._python_graph

    def node_traceback(self, element_name: str) -> Any:
        """The calls that made an operation."""
        if self._python_graph is None:
            raise LookupError("Python graph is not available for traceback lookup: call set_python_graph.")
        return self._python_graph.get_operation_by_name(element_name.partition(":")[0]).traceback


def _input(text: str) -> tuple[str, bool]:
    return text.lstrip("^").partition(":")[0], text.startswith("^")


def _device_name(folder: str) -> str:
    """`_tfdbg_device_,job_x,replica_0,...` as a device's name."""
    parts = folder.removeprefix(_DEVICE).split(",")
    return (
        "/".join(re.sub(r"^(job|replica|task|device)_", r"\1:", p) for p in parts)
        .replace("CPU_", "CPU:")
        .replace("GPU_", "GPU:")
    )


def _text(path: Path) -> str:
    from tensorfleet.base.protos import Event

    return str(Event.FromString(path.read_bytes()).log_message.message)
