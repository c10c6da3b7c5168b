"""`tf.keras.utils.multi_gpu_model`: a model run on parts of each batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras.engine.network import Model
from tensorfleet_legacy.keras.layers.core_lambda import Lambda
from tensorfleet_legacy.keras.layers.merge import concatenate


def _part(data: Tensor, i: int, parts: int) -> Tensor:
    """The i-th part of a batch; the last one has what is left."""
    count = find("shape")(data)[0]
    step = count // parts
    result = data[i * step :] if i == parts - 1 else data[i * step : (i + 1) * step]
    result.set_shape([None, *data.shape.as_list()[1:]])
    return result


def _devices(gpus: Any) -> list[int]:
    if isinstance(gpus, Sequence):
        if len(gpus) <= 1:
            raise ValueError(
                "For multi-gpu usage to be effective, call `multi_gpu_model` with `len(gpus) >= 2`. Received: "
                f"`gpus={gpus}`"
            )
        return list(gpus)
    if gpus <= 1:
        raise ValueError(
            f"For multi-gpu usage to be effective, call `multi_gpu_model` with `gpus >= 2`. Received: `gpus={gpus}`"
        )
    return list(range(gpus))


def multi_gpu_model(model: Any, gpus: Any, cpu_merge: bool = True, cpu_relocation: bool = False) -> Any:
    """A model of the same weights that runs on a part of each batch in as many replicas, and joins what they give.

    A replica is placed on the GPU of its number where there is one, and beside the others on the CPU where not.
    """
    there = len(find("config.experimental.list_physical_devices")("GPU"))
    devices = _devices(max(2, there) if gpus is None else gpus)
    outputs: list[list[Any]] = [[] for _ in model.outputs]
    for i, number in enumerate(devices):
        with (
            find("device")(f"/gpu:{number}" if number < there else None),
            find("name_scope")(f"replica_{number}"),
        ):
            inputs = [
                Lambda(_part, arguments={"i": i, "parts": len(devices)})(given) for given in model.inputs
            ]
            result = model(inputs[0] if len(inputs) == 1 else inputs)
            for kept, output in zip(outputs, result if isinstance(result, list) else [result], strict=True):
                kept.append(output)
    with find("device")("/cpu:0" if cpu_merge else None):
        joined = [
            concatenate(parts, axis=0, name=name)
            for name, parts in zip(model.output_names, outputs, strict=True)
        ]
    return Model(model.inputs, joined if len(joined) > 1 else joined[0])
