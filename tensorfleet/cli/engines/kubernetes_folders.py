"""Folders of a script's arguments that are on no volume which the pods share. Decides only."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from tensorfleet.cli.engines.kubernetes_arguments import PodOptions
from tensorfleet.cli.engines.shared_folders import named_folders

# Volumes of one pod alone, or that cannot be written.
_OWN = ("emptyDir", "secret", "configMap")
_READ_ONLY_FLAGS = ("data", "input", "dataset")  # what the image may have: `--data_dir`


def warnings(command: Sequence[str], options: PodOptions, directory: str | None) -> list[str]:
    """A sentence for each folder that goes with its pod. `directory` is where the task starts, if that is known."""
    shared = list(_shared_paths(options))
    folders = {
        flag: folder
        for flag, folder in named_folders(command, directory or "").items()
        if not flag.lstrip("-").startswith(_READ_ONLY_FLAGS)
    }
    return [
        f"{flag} {folder} is on no volume that the pods share: each pod has its own, which is gone with it. Checkpoints "
        "need one (--engine-arg volume=claim:NAME:/path), or a URL."
        for flag, folder in folders.items()
        if not any(_is_below(folder, path) for path in shared)
    ]


def _shared_paths(options: PodOptions) -> Iterator[str]:
    for volume in options.volumes:
        if not volume.read_only and not any(kind in volume.source for kind in _OWN):
            yield volume.path
    for container in (options.pod.get("spec") or {}).get("containers") or []:
        for mount in container.get("volumeMounts") or []:
            yield str(mount.get("mountPath", ""))


def _is_below(folder: str, path: str) -> bool:
    path = posixpath.normpath(path)
    return folder == path or folder.startswith(path.rstrip("/") + "/")
