"""`--engine-arg KEY=VALUE` of Kubernetes runs: what a pod is to look like beyond the command, the image and the resources."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Volume:
    """A volume of every task: its source as Kubernetes spells it, and where it is mounted."""

    source: Json
    path: str
    read_only: bool = False


@dataclass(frozen=True)
class PodOptions:
    """The options of a run's pods."""

    volumes: tuple[Volume, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[Json, ...] = ()
    service_account: str | None = None
    image_pull_secrets: tuple[str, ...] = ()
    image_pull_policy: str | None = None
    priority_class: str | None = None
    #: Secrets and ConfigMaps whose keys become environment variables
    environment_from: tuple[Json, ...] = ()
    #: resources beyond --cpus-per-task, --memory and --gpus-per-worker
    requests: dict[str, str] = field(default_factory=dict)
    limits: dict[str, str] = field(default_factory=dict)
    gpu_resource: str = "nvidia.com/gpu"
    user: int | None = None
    group: int | None = None
    file_group: int | None = None
    is_restricted: bool = True
    probes: bool = True
    working_directory: str | None = None
    python: str = "python3"
    ship: bool = False
    #: only the image has the script, and the user says how its tasks learn who they are
    script_in_image: bool = False
    #: a folder of certificates on this machine, or the name of a Secret that has them
    tls_folder: Path | None = None
    tls_secret: str | None = None
    #: seconds from SIGTERM to SIGKILL; until a task on a silent node is lost; until ended Jobs are collected
    grace: int = 60
    lost: int = 60
    ttl: int = 3600
    #: how often a printed Job starts its task again: nobody follows it
    backoff_limit: int = 3
    #: merged into every pod last
    pod: Json = field(default_factory=dict)


def pod_options(arguments: Sequence[str]) -> PodOptions:
    """The options that the user has written. Raises ValueError with a sentence for a mistake."""
    options = PodOptions()
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or not value:
            raise ValueError(f"--engine-arg {argument} does not have the form KEY=VALUE.")
        options = _with(options, key.strip(), value)
    if options.tls_folder and options.tls_secret:
        raise ValueError(
            "--engine-arg tls and tls_secret exclude each other. Give the folder or the name of the Secret."
        )
    return options


def _with(options: PodOptions, key: str, value: str) -> PodOptions:
    kind, dot, name = key.partition(".")
    if dot and kind in ("request", "limit") and name:
        amounts = {**getattr(options, f"{kind}s"), name: value}
        return _changed(options, f"{kind}s", amounts)
    if key not in _KEYS:
        near = difflib.get_close_matches(key, _KEYS, 1)
        meant = f"Did you mean {near[0]}?" if near else f"There are {', '.join(sorted(_KEYS))}."
        raise ValueError(f"--engine-arg {key} is not an option of Kubernetes. {meant}")
    try:
        return _KEYS[key](options, value)
    except ValueError as error:
        raise ValueError(f"--engine-arg {key}={value} {error}") from None


def _changed(options: PodOptions, name: str, value: Any) -> PodOptions:
    return replace(options, **{name: value})


def _set(name: str, parse: Callable[[str], object] = str) -> Callable[[PodOptions, str], PodOptions]:
    return lambda options, value: _changed(options, name, parse(value))


def _add(name: str, parse: Callable[[str], object] = str) -> Callable[[PodOptions, str], PodOptions]:
    return lambda options, value: _changed(options, name, (*getattr(options, name), parse(value)))


def _pair(name: str) -> Callable[[PodOptions, str], PodOptions]:
    def add(options: PodOptions, text: str) -> PodOptions:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ValueError("has no NAME=VALUE behind the first `=`.")
        return _changed(options, name, {**getattr(options, name), key: value})

    return add


def _number(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise ValueError(f"is not a whole number of at least {least}.")
        return int(text)

    return parse


def _choice(**choices: object) -> Callable[[str], object]:
    def parse(text: str) -> object:
        if text not in choices:
            raise ValueError(f"is not one of {', '.join(choices)}.")
        return choices[text]

    return parse


_SWITCH = {"1": True, "0": False, "on": True, "off": False}


def _switch(text: str) -> bool:
    if text not in _SWITCH:
        raise ValueError("is not on or off.")
    return _SWITCH[text]


def _volume(text: str) -> Volume:
    read_only = text.endswith(":ro")
    kind, _, rest = text.removesuffix(":ro").partition(":")
    source, _, path = rest.rpartition(":")
    if (
        kind not in _SOURCES
        or not path.startswith("/")
        or (not source and kind not in ("emptyDir", "memory"))
    ):
        raise ValueError(
            "is not a volume. Write claim:NAME:/path, hostPath:/on/node:/path, nfs:SERVER:/export:/path, "
            "secret:NAME:/path, configMap:NAME:/path, emptyDir:/path or memory:SIZE:/path, with :ro behind it to read only."
        )
    return Volume(_SOURCES[kind](source), path, read_only)


def _nfs(source: str) -> Json:
    server, _, export = source.partition(":")
    if not server or not export.startswith("/"):
        raise ValueError("is not a volume. Write nfs:SERVER:/export:/path.")
    return {"nfs": {"server": server, "path": export}}


_SOURCES: dict[str, Callable[[str], Json]] = {
    "claim": lambda name: {"persistentVolumeClaim": {"claimName": name}},
    "hostPath": lambda path: {"hostPath": {"path": path}},
    "nfs": _nfs,
    "secret": lambda name: {"secret": {"secretName": name}},
    "configMap": lambda name: {"configMap": {"name": name}},
    "emptyDir": lambda size: {"emptyDir": {"sizeLimit": size} if size else {}},
    "memory": lambda size: {"emptyDir": {"medium": "Memory", **({"sizeLimit": size} if size else {})}},
}


def _toleration(text: str) -> Json:
    """KEY, KEY:EFFECT, KEY=VALUE or KEY=VALUE:EFFECT, as `kubectl taint` writes them."""
    name, _, effect = text.partition(":")
    key, equals, value = name.partition("=")
    if effect not in ("", "NoSchedule", "PreferNoSchedule", "NoExecute"):
        raise ValueError(f"has the effect {effect!r}. Use NoSchedule, PreferNoSchedule or NoExecute.")
    toleration: Json = {"key": key, "operator": "Equal" if equals else "Exists"}
    return toleration | ({"value": value} if equals else {}) | ({"effect": effect} if effect else {})


def _pod(text: str) -> Json:
    """Part of a pod, as YAML or as a file that has it."""
    import yaml

    try:
        content = yaml.safe_load(Path(text[1:]).read_text() if text.startswith("@") else text)
    except (OSError, yaml.YAMLError) as error:
        raise ValueError(f"cannot be read: {error}") from None
    if not isinstance(content, dict) or not content.keys() <= {"metadata", "spec"}:
        raise ValueError(
            'is not part of a pod. Write YAML with `metadata` or `spec`, or @FILE: pod={"spec": {"dnsPolicy": "Default"}}.'
        )
    return content


_KEYS: dict[str, Callable[[PodOptions, str], PodOptions]] = {
    "annotation": _pair("annotations"),
    "backoff_limit": _set("backoff_limit", _number(0)),
    "env_from_config_map": _add("environment_from", lambda name: {"configMapRef": {"name": name}}),
    "env_from_secret": _add("environment_from", lambda name: {"secretRef": {"name": name}}),
    "fs_group": _set("file_group", _number(0)),
    "gpu_resource": _set("gpu_resource"),
    "grace": _set("grace", _number(1)),
    "image_pull_policy": _set(
        "image_pull_policy", _choice(Always="Always", IfNotPresent="IfNotPresent", Never="Never")
    ),
    "image_pull_secret": _add("image_pull_secrets"),
    "label": _pair("labels"),
    "lost": _set("lost", _number(1)),
    "node_selector": _pair("node_selector"),
    "pod": _set("pod", _pod),
    "priority_class": _set("priority_class"),
    "probes": _set("probes", _switch),
    "python": _set("python"),
    "run_as_group": _set("group", _number(0)),
    "run_as_user": _set("user", _number(0)),
    "security": _set("is_restricted", _choice(restricted=True, none=False)),
    "script": _set("script_in_image", _choice(image=True, here=False)),
    "service_account": _set("service_account"),
    "ship": _set("ship", _switch),
    "tls": _set("tls_folder", Path),
    "tls_secret": _set("tls_secret"),
    "toleration": _add("tolerations", _toleration),
    "ttl": _set("ttl", _number(0)),
    "volume": _add("volumes", _volume),
    "workdir": _set("working_directory"),
}
