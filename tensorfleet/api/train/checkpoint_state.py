"""The files of checkpoints, and the file `checkpoint` beside them that names the latest."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from glob import escape
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors, logging
from tensorfleet.base.file_systems import file_system, is_remote
from tensorfleet.base.files import errors_about as file_errors
from tensorfleet.base.files import file_path
from tensorfleet.base.formats.atomic_files import remove_files, sync_in_background, whole_file
from tensorfleet.base.formats.checkpoint_reader import is_complete
from tensorfleet.base.formats.checkpoint_writer import index_file
from tensorfleet.base.naming import export

if TYPE_CHECKING:
    from tensorfleet.api.train.types import PathLike
    from tensorfleet.base.protos import CheckpointState

STATE_FILE = "checkpoint"


def _state_path(save_dir: str, latest_filename: str | None) -> str:
    return os.path.join(save_dir, STATE_FILE if latest_filename is None else latest_filename)


@export("train.generate_checkpoint_state_proto")
def generate_checkpoint_state_proto(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> CheckpointState:
    """A `CheckpointState` with these paths, the latest last; relative to `save_dir` when that is relative."""
    from tensorfleet.base.protos import CheckpointState

    # A list that is given gets the latest path at its end, as TensorFlow does it.
    paths = all_model_checkpoint_paths if isinstance(all_model_checkpoint_paths, list) else []
    if paths is not all_model_checkpoint_paths:
        paths.extend(all_model_checkpoint_paths or ())
    if not paths or paths[-1] != model_checkpoint_path:
        paths.append(model_checkpoint_path)
    stamps = all_model_checkpoint_timestamps
    if stamps and len(stamps) != len(paths):
        raise ValueError(
            f"Checkpoint timestamps, if provided, must match checkpoint paths (got paths {paths} and "
            f"timestamps {list(stamps)})"
        )
    # Relative paths let a directory be moved or mounted elsewhere together with its checkpoints.
    if not _is_absolute(save_dir):
        paths = [p if _is_absolute(p) else os.path.relpath(p, save_dir or ".") for p in paths]
    return CheckpointState(
        model_checkpoint_path=paths[-1],
        all_model_checkpoint_paths=paths,
        all_model_checkpoint_timestamps=stamps or (),
        last_preserved_timestamp=last_preserved_timestamp or 0.0,
    )


@export(
    "train.update_checkpoint_state",
    "python.training.saver.update_checkpoint_state",
    "python.training.checkpoint_management.update_checkpoint_state",
)
def update_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """Writes the file that names the latest checkpoint, in `save_dir`."""
    write_state(
        save_dir,
        model_checkpoint_path,
        all_model_checkpoint_paths,
        latest_filename,
        stamps=all_model_checkpoint_timestamps,
        preserved=last_preserved_timestamp,
    )


def write_state(
    save_dir: str,
    latest: str,
    paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    relative: bool = False,
    stamps: Sequence[float] | None = None,
    preserved: float | None = None,
) -> None:
    """Writes the file in one go; with `relative`, so that the directory can be moved."""
    from google.protobuf import text_format

    path = file_path(_state_path(save_dir, latest_filename))
    if relative:
        latest = _relative(latest, save_dir)
        paths = [_relative(p, save_dir) for p in paths or ()]
    state = generate_checkpoint_state_proto(save_dir, latest, paths, stamps, preserved)
    if path == state.model_checkpoint_path:
        raise RuntimeError(
            f"Save path '{latest}' conflicts with path used for checkpoint state. Please use a different save "
            "path."
        )
    with whole_file(path) as f:
        f.write(text_format.MessageToString(state).encode())


def _is_absolute(path: str) -> bool:
    return os.path.isabs(path) or is_remote(path)


def _relative(path: str, save_dir: str) -> str:
    return os.path.relpath(path, save_dir) if _is_absolute(path) else path


def _completed(folder: str, path: str) -> str:
    return path if is_remote(path) else os.path.join(folder, path)


@export(
    "train.get_checkpoint_state",
    "python.training.saver.get_checkpoint_state",
    "python.training.checkpoint_management.get_checkpoint_state",
)
def get_checkpoint_state(
    checkpoint_dir: PathLike, latest_filename: str | None = None
) -> CheckpointState | None:
    """The `CheckpointState` of a directory, its paths made complete; None when there is none to read."""
    from google.protobuf import text_format

    from tensorfleet.base.protos import CheckpointState

    folder = os.fspath(checkpoint_dir)
    folder = folder.decode() if isinstance(folder, bytes) else folder
    path = file_path(_state_path(folder, latest_filename))
    with file_errors(path):
        if not file_system(path).exists(path):
            return None
    try:
        with file_system(path).open(path, "rb") as f:
            state = text_format.Merge(f.read().decode(), CheckpointState())
    except (OSError, UnicodeDecodeError, text_format.ParseError) as e:
        logging.warning("%s: %s", type(e).__name__, e)
        logging.warning("%s: Checkpoint ignored", path)
        return None
    if not state.model_checkpoint_path:
        raise ValueError(f"Invalid checkpoint state loaded from {checkpoint_dir}")
    state.model_checkpoint_path = _completed(folder, state.model_checkpoint_path)
    for i, name in enumerate(state.all_model_checkpoint_paths):
        state.all_model_checkpoint_paths[i] = _completed(folder, name)
    # Only a machine that went down can have lost a checkpoint that a finished save wrote:
    # docs/decisions/0012. On others a damaged checkpoint stays an error.
    if not is_remote(path) and os.stat(path).st_mtime < _machine_started():
        _skip_incomplete(state)
    return state


def _machine_started() -> float:
    # Boot time counts suspended time, too; where it is missing, the monotonic clock is near enough.
    return time.time() - time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _skip_incomplete(state: CheckpointState) -> None:
    """Names the checkpoint before the latest if the latest was not synced before the machine went down."""
    latest = state.model_checkpoint_path
    for path in [latest, *reversed(state.all_model_checkpoint_paths)]:
        if is_complete(file_path(path)):
            if path != latest:
                logging.error(
                    "%s was not on disk yet when the machine went down; going on from %s", latest, path
                )
            state.model_checkpoint_path = path
            return


@export(
    "train.latest_checkpoint",
    "python.training.saver.latest_checkpoint",
    "python.training.checkpoint_management.latest_checkpoint",
)
def latest_checkpoint(checkpoint_dir: PathLike, latest_filename: str | None = None) -> str | None:
    """The path of the latest checkpoint in a directory, for `Saver.restore`; None when there is none."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    if checkpoint_exists(state.model_checkpoint_path):
        return state.model_checkpoint_path
    logging.error("Couldn't match files for checkpoint %s", state.model_checkpoint_path)
    return None


def _main_files(prefix: PathLike) -> list[str]:
    """The files whose presence makes a checkpoint: an index, or the single file of the older format."""
    path = file_path(prefix)
    return next((files for p in (index_file(path), path) if (files := _matching(p))), [])


def _matching(path: str) -> list[str]:
    with file_errors(path):
        return [path] if file_system(path).exists(path) else file_system(path).glob(path)


@export(
    "train.checkpoint_exists",
    "python.training.saver.checkpoint_exists",
    "python.training.checkpoint_management.checkpoint_exists",
)
def checkpoint_exists(checkpoint_prefix: PathLike) -> bool:
    """Whether there is a checkpoint of that path."""
    return bool(_main_files(checkpoint_prefix))


@export(
    "train.get_checkpoint_mtimes",
    "python.training.saver.get_checkpoint_mtimes",
    "python.training.checkpoint_management.get_checkpoint_mtimes",
)
def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[Any]) -> list[float]:
    """When each checkpoint was written, in seconds; those that are not there are left out."""
    times = []
    for prefix in checkpoint_prefixes:
        files = _main_files(prefix)
        if files:
            times.append(file_system(files[0]).mtime_ns(files[0]) / 1e9)
    return times


@export("train.remove_checkpoint")
def remove_checkpoint(
    checkpoint_prefix: PathLike, checkpoint_format_version: int = 2, meta_graph_suffix: str = "meta"
) -> None:
    """Deletes the files of a checkpoint, its MetaGraph included."""
    path = file_path(checkpoint_prefix)
    if not path:
        raise errors.InvalidArgumentError(None, None, "remove_checkpoint needs the path of a checkpoint.")
    remove_files(_files(path, meta_graph_suffix))


def start_sync(checkpoint_prefix: str, meta_graph_suffix: str = "meta") -> None:
    """Starts to sync a checkpoint to disk in a thread. When this returns, the one before it is synced."""
    sync_in_background(_files(file_path(checkpoint_prefix), meta_graph_suffix))


def _files(path: str, meta_graph_suffix: str) -> list[str]:
    """The files of a checkpoint, the index first: without it the others are no checkpoint."""
    system = file_system(path)
    data = system.glob(escape(path) + ".data-?????-of-?????")
    names = [index_file(path), meta_graph_filename(path, meta_graph_suffix), *data, path]
    return [name for name in names if system.isfile(name)]


def meta_graph_filename(checkpoint_filename: str, meta_graph_suffix: str = "meta") -> str:
    """Where the MetaGraph of a checkpoint is written."""
    whole = re.sub(r"-[\d?]+-of-\d+$", "", checkpoint_filename)  # a shard's name without its number
    return f"{whole}.{meta_graph_suffix}"
