"""The names under `tf.distribute`; strategies are loaded when they are first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.api import publish_lazily
from tensorfleet.distribute import context  # noqa: F401  publishes its names

_PLACES = {
    "CollectiveCommunication": "multi_worker",
    "CentralStorageStrategy": "mirrored",
    "InputContext": "inputs",
    "InputReplicationMode": "inputs",
    "MirroredStrategy": "mirrored",
    "MultiWorkerMirroredStrategy": "multi_worker",
    "OneDeviceStrategy": "mirrored",
    "ParameterServerStrategy": "parameter_server",
    "ReplicaContext": "replicas",
    "Strategy": "strategy",
    "StrategyExtended": "extended",
}
_EXPERIMENTAL = {
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
}


def _load(full: str) -> Any:
    name = full.rpartition(".")[2]
    return getattr(importlib.import_module(f"tensorfleet.distribute.{_PLACES[name]}"), name)


for _name in _PLACES:
    publish_lazily(_load, f"distribute.{'experimental.' * (_name in _EXPERIMENTAL)}{_name}")
