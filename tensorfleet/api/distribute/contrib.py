"""The strategies of `tf.contrib.distribute`: those of `tf.distribute` by their first names and arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tensorfleet.api.distribute import mirrored
from tensorfleet.api.distribute.multi_worker import CollectiveCommunication, MultiWorkerMirroredStrategy
from tensorfleet.api.distribute.parameter_server import ParameterServerExtended
from tensorfleet.api.distribute.strategy import Strategy
from tensorfleet.cluster.membership.resolvers import TFConfigClusterResolver

if TYPE_CHECKING:
    from tensorfleet.api.distribute.cross_device import CrossDeviceOps


def _several(num_gpus: int | None, devices: Sequence[str] | None = None) -> Sequence[str] | None:
    """The devices for a number of GPUs; None, the default of `tf.distribute`, on a machine without any."""
    if devices is not None and num_gpus is not None:
        raise ValueError("Must only specify one of `devices` and `num_gpus`.")
    if not num_gpus:
        return devices
    there = [d for d in mirrored.local_devices() if "GPU" in d]
    return [f"/device:GPU:{i}" for i in range(num_gpus)] if there else None


class MirroredStrategy(mirrored.MirroredStrategy):
    """`tf.distribute.MirroredStrategy` on a number of GPUs, or on the CPU of a machine without any."""

    def __init__(
        self,
        devices: Sequence[str] | None = None,
        num_gpus: int | None = None,
        num_gpus_per_worker: int | None = None,
        cross_device_ops: CrossDeviceOps | None = None,
        auto_shard_dataset: bool = False,
        cross_tower_ops: CrossDeviceOps | None = None,
    ) -> None:
        super().__init__(
            _several(num_gpus or num_gpus_per_worker, devices), cross_device_ops or cross_tower_ops
        )


class OneDeviceStrategy(mirrored.OneDeviceStrategy):
    """`tf.distribute.OneDeviceStrategy`."""


class CollectiveAllReduceStrategy(MultiWorkerMirroredStrategy):
    """`tf.distribute.experimental.MultiWorkerMirroredStrategy` by its first name."""

    def __init__(
        self, num_gpus_per_worker: int = 0, communication: CollectiveCommunication | str = "AUTO"
    ) -> None:
        super().__init__(communication)


class ParameterServerStrategy(Strategy):
    """`tf.distribute.experimental.ParameterServerStrategy` with a number of GPUs in each worker, or with none."""

    def __init__(self, num_gpus_per_worker: int = 0) -> None:
        super().__init__(ParameterServerExtended(None, TFConfigClusterResolver(), num_gpus_per_worker))
