"""Looking into checkpoints without a graph."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tensorfleet.api.train.checkpoint_state import latest_checkpoint
from tensorfleet.base.files import isdir
from tensorfleet.base.formats.checkpoint_v1 import open_checkpoint
from tensorfleet.base.formats.checkpoint_writer import shape_of
from tensorfleet.base.naming import export
from tensorfleet.base.platform.compat import as_text
from tensorfleet.base.types import Array

if TYPE_CHECKING:
    from tensorfleet.api.train.types import PathLike

GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"


class CheckpointReader:
    """The tensors of a checkpoint by name."""

    def __init__(self, filename: PathLike) -> None:
        self._bundle = open_checkpoint(as_text(os.fspath(filename)))

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether the checkpoint holds a tensor of that name."""
        return as_text(tensor_str) in self._bundle

    def get_tensor(self, tensor_str: str) -> Any:
        """A tensor as a numpy array; NotFoundError when there is none of that name."""
        array = self._bundle.read(as_text(tensor_str))
        return array[()] if array.ndim == 0 else array

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shapes by name."""
        return {name: list(self._bundle.shape(name)) for name in self._bundle.names()}

    def get_variable_to_dtype_map(self) -> dict[str, Any]:
        """The types by name."""
        return {name: self._bundle.dtype(name) for name in self._bundle.names()}

    def debug_string(self) -> bytes:
        """The contents of the checkpoint: a line for each tensor and each part of one."""
        from tensorfleet.base.protos import DataType

        lines = []
        parts = any(key.startswith(b"\0") for key in self._bundle.entries)
        for key, entry in self._bundle.entries.items():
            if entry.slices and parts:
                continue  # its parts are listed
            dims = ",".join(map(str, shape_of(entry)))
            lines.append(key + f" ({DataType.Name(entry.dtype)}) [{dims}]\n".encode())
        return b"".join(lines)


@export(
    "train.NewCheckpointReader",
    "pywrap_tensorflow.NewCheckpointReader",
    "python.pywrap_tensorflow.NewCheckpointReader",
    "python.training.py_checkpoint_reader.NewCheckpointReader",
)
def NewCheckpointReader(filepattern: PathLike) -> CheckpointReader:
    """A reader of the checkpoint at this path."""
    return CheckpointReader(filepattern)


@export("train.load_checkpoint")
def load_checkpoint(ckpt_dir_or_file: PathLike) -> CheckpointReader:
    """A reader of a checkpoint, or of the latest one in a directory."""
    return NewCheckpointReader(checkpoint_in(ckpt_dir_or_file))


def object_keys(path: str) -> dict[str, str]:
    """Where a checkpoint of objects has each variable, by the variable's name; empty for other checkpoints."""
    from tensorfleet.base.protos import TrackableObjectGraph

    reader = NewCheckpointReader(path)
    if not reader.has_tensor(GRAPH_KEY):
        return {}
    graph = TrackableObjectGraph.FromString(reader.get_tensor(GRAPH_KEY))
    return {a.full_name: a.checkpoint_key for n in graph.nodes for a in n.attributes if a.full_name}


def checkpoint_in(ckpt_dir_or_file: PathLike) -> str:
    """A checkpoint's path: as given, or the latest one in the directory given."""
    if isdir(ckpt_dir_or_file):
        latest = latest_checkpoint(ckpt_dir_or_file)
        if latest is None:
            raise ValueError(
                f"Couldn't find 'checkpoint' file or checkpoints in given directory {as_text(os.fspath(ckpt_dir_or_file))}"
            )
        return latest
    return as_text(os.fspath(ckpt_dir_or_file))


@export("train.load_variable")
def load_variable(ckpt_dir_or_file: PathLike, name: str) -> Array:
    """The value of a variable in a checkpoint."""
    value: Array = load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))
    return value


@export("train.list_variables")
def list_variables(ckpt_dir_or_file: PathLike) -> list[tuple[str, list[int]]]:
    """The names, sorted, and shapes of the variables in a checkpoint."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())
