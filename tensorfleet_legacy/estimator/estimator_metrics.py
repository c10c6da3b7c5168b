"""The metrics of an evaluation: one operation that updates all, their values, and how they are written down."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tensorfleet.api.metrics.means import mean
from tensorfleet.api.summary.writer import FileWriterCache
from tensorfleet.base import logging
from tensorfleet.graph.scopes import GraphKeys
from tensorfleet.graph.tensor_proto import make_tensor_proto
from tensorfleet.ops.array.basic import group
from tensorfleet_legacy.estimator.model_fn import is_metric_object

LOSS = "loss"


class ReportedLoss(NamedTuple):
    """A metric of a model that is reported as its loss: that of a head of `tf.contrib.learn` knows the weights."""

    value: Any
    update: Any


def with_loss(metrics: dict, loss: Any) -> tuple[Any, dict]:
    """The update of all metrics and their values by name, the mean loss among them."""
    for name in (LOSS, GraphKeys.GLOBAL_STEP):
        if name in metrics and not isinstance(metrics[name], ReportedLoss):
            raise ValueError(
                f'Metric with name "{name}" is not allowed, because Estimator already defines a default metric with the '
                "same name."
            )
    values, updates = {}, []
    for name, metric in sorted({LOSS: metrics.get(LOSS) or mean(loss), **metrics}.items()):
        if is_metric_object(metric):
            values[name] = metric.result()
            updates += metric.updates
        else:
            values[name], update = metric
            updates.append(update)
    return group(*updates), values


def summarized(found: dict, folder: str, checkpoint: str | None) -> None:
    """Writes the values of an evaluation, and which checkpoint they are of, as summaries."""
    from tensorfleet.base.protos import Summary

    step = found[GraphKeys.GLOBAL_STEP]
    text = ", ".join(f"{name} = {value}" for name, value in sorted(found.items()))
    logging.info("Saving dict for global step %d: %s", step, text)
    writer = FileWriterCache.get(folder)
    summary = Summary()
    for name, value in found.items():
        if name != GraphKeys.GLOBAL_STEP:
            _add(summary, name, value)
    writer.add_summary(summary, step)
    if checkpoint:
        logging.info("Saving 'checkpoint_path' summary for global step %d: %s", step, checkpoint)
        path = Summary()
        path.value.add(tag="checkpoint_path/checkpoint_path").tensor.CopyFrom(make_tensor_proto(checkpoint))
        writer.add_summary(path, step)
    writer.flush()


def _add(summary: Any, name: str, value: Any) -> None:
    """One value: a number, serialized summaries, or an array."""
    if isinstance(value, (float, int, np.floating, np.integer)):
        summary.value.add(tag=name, simple_value=float(value))
    elif isinstance(value, bytes):
        try:
            given = type(summary).FromString(value)
        except Exception:  # some other text
            logging.warning("Skipping summary for %s, cannot parse string to Summary.", name)
            return
        for i, part in enumerate(given.value):
            part.tag = f"{name}/{i}"
        summary.value.extend(given.value)
    elif isinstance(value, np.ndarray):
        summary.value.add(tag=name).tensor.CopyFrom(make_tensor_proto(value))
    elif value is not None:
        logging.warning(
            "Skipping summary for %s, must be a float, np.float32, np.int64, np.int32 or int or np.ndarray or a serialized "
            "string of Summary.",
            name,
        )
