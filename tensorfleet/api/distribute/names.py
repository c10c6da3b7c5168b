"""The names under `tf.distribute` and `tf.contrib.distribute`; strategies are loaded when they are first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.api.distribute import context  # noqa: F401  publishes its names
from tensorfleet.base.naming import publish_lazily

_PLACES = {
    "CrossDeviceOps": "cross_device",
    "HierarchicalCopyAllReduce": "cross_device",
    "InputContext": "inputs",
    "InputReplicationMode": "inputs",
    "MirroredStrategy": "mirrored",
    "NcclAllReduce": "cross_device",
    "OneDeviceStrategy": "mirrored",
    "ReductionToOneDevice": "cross_device",
    "ReplicaContext": "replicas",
    "Strategy": "strategy",
    "StrategyExtended": "extended",
    "experimental.CentralStorageStrategy": "mirrored",
    "experimental.CollectiveCommunication": "multi_worker",
    "experimental.MultiWorkerMirroredStrategy": "multi_worker",
    "experimental.ParameterServerStrategy": "parameter_server",
}
_CONTRIB_NAMES = (
    "CollectiveAllReduceStrategy",
    "MirroredStrategy",
    "OneDeviceStrategy",
    "ParameterServerStrategy",
)


def _load(full: str) -> Any:
    name = full.removeprefix("distribute.")
    return _from(_PLACES[name], name)


def _load_old(full: str) -> Any:
    return _from("contrib", full)


def _from(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"tensorfleet.api.distribute.{module}"), name.rpartition(".")[2])


publish_lazily(_load, *(f"distribute.{name}" for name in _PLACES))
publish_lazily(_load_old, *(f"contrib.distribute.{name}" for name in _CONTRIB_NAMES))
publish_lazily(
    lambda _: importlib.import_module("tensorfleet.api.distribute.coordinator"),
    "python.distribute.distribute_coordinator",
)
