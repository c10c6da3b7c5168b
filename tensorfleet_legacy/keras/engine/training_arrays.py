"""The loops over epochs and batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.callbacks import BaseLogger, CallbackList, History, ProgbarLogger

__all__ = ["BaseLogger", "evaluate", "fit", "predict"]


class Means:
    """The loss over batches, and the metrics, which add up by themselves."""

    def __init__(self, by_steps: bool) -> None:
        self._by_steps = by_steps
        self._total, self._count = 0.0, 0
        self._last: list = []

    def add(self, values: list, size: int) -> None:
        """Adds a batch: its loss first."""
        share = 1 if self._by_steps else size
        self._total += float(values[0]) * share
        self._count += share
        self._last = values

    def results(self) -> list:
        """The loss of an example and the metrics."""
        if not self._count:
            return []
        return [self._total / self._count, *(float(v) if np.ndim(v) == 0 else v for v in self._last[1:])]


def _listed(model: Any, given: Any, source: Any, verbose: int, epochs: int, **more: Any) -> CallbackList:
    """The callbacks of a loop, which know how it runs."""
    own = given.callbacks if isinstance(given, CallbackList) else list(given or [])
    if verbose:
        mode = "steps" if source.by_steps else "samples"
        stateful = model.metrics_names[1:] if model._options is not None else []
        own = [*own, ProgbarLogger(mode, stateful_metrics=stateful)]
    result = CallbackList(own)
    result.set_model(model)
    result.set_params(
        {
            "batch_size": source.batch_size,
            "epochs": epochs,
            "steps": source.steps,
            "samples": source.samples,
            "verbose": verbose,
            **more,
        }
    )
    return result


def fit(
    model: Any,
    source: Any,
    epochs: int,
    initial_epoch: int,
    verbose: int,
    callbacks: Any,
    validation: Any,
    validation_freq: Any,
    announce: bool,
) -> History:
    """Trains for epochs, evaluating after each that `validation_freq` names."""
    if not model.outputs:
        source.first()  # the shapes of the data are those of the inputs
    names = list(model.metrics_names)
    history = History()
    given = [*(callbacks.callbacks if isinstance(callbacks, CallbackList) else callbacks or []), history]
    every = [*names, *(f"val_{n}" for n in names)] if validation is not None else names
    hooks = _listed(
        model, given, source, verbose, epochs, metrics=every, do_validation=validation is not None
    )
    for callback in hooks.callbacks:
        callback.validation_data = getattr(validation, "lists", None)
    if verbose and announce:
        _announce(source, validation)
    model.stop_training = False
    model.history = history
    fetches = model._fetches("train")
    session = state.get_session()
    hooks.begin("train")
    for epoch in range(initial_epoch, epochs):
        model.reset_metrics()
        hooks.on_epoch_begin(epoch)
        means = Means(source.by_steps)
        _train_epoch(model, source, session, fetches, names, hooks, means)
        logs: dict[str, Any] = dict(zip(names, means.results(), strict=False))
        if validation is not None and _is_due(validation_freq, epoch):
            values = _evaluate(model, validation, names, hooks)
            logs.update((f"val_{n}", v) for n, v in zip(names, values, strict=False))
        if means.results() or not model.stop_training:
            hooks.on_epoch_end(epoch, logs)
        if source.by_steps:
            hooks.params["steps"] = source.steps
        if model.stop_training:
            break
    hooks.end("train")
    model._leave(session)
    return history


def _train_epoch(
    model: Any, source: Any, session: Any, fetches: list, names: list, hooks: Any, means: Means
) -> None:
    heard, run, feed = hooks.acts_on("train"), session.run, model._feeder(True)
    workers = session.graph.__dict__.get("_of_workers")
    for number, whole in enumerate(source.epoch()):
        batch = whole if workers is None else whole.part(workers._part_of(whole.size))
        if not heard:
            means.add(run(fetches, feed(batch))[:-1], batch.size)
            continue
        logs = {"batch": number, "size": batch.size if not source.by_steps or batch.size else 1}
        hooks.batch("train", "begin", number, logs)
        values = run(fetches, feed(batch))[:-1]
        means.add(values, batch.size)
        logs.update(zip(names, values, strict=True))
        hooks.batch("train", "end", number, logs)
        if model.stop_training:
            return


def _is_due(frequency: Any, epoch: int) -> bool:
    return (epoch + 1) % frequency == 0 if isinstance(frequency, int) else (epoch + 1) in frequency


def _announce(source: Any, validation: Any) -> None:
    def amount(what: Any) -> str:
        return f"{what.steps} steps" if what.by_steps else f"{what.samples} samples"

    if source.steps is None and source.by_steps:
        return
    more = f", validate on {amount(validation)}" if validation is not None else ""
    print(f"Train on {amount(source)}{more}")


def _evaluate(model: Any, source: Any, names: list[str], hooks: CallbackList) -> list:
    """The loss and the metrics over a source."""
    fetches = model._fetches("test")
    session = state.get_session()
    model.reset_metrics()
    means = Means(source.by_steps)
    heard = hooks.acts_on("test")
    hooks.begin("test")
    stopped, feed = model.stop_training, model._feeder(False)
    for number, batch in enumerate(source.epoch()):
        logs = {"batch": number, "size": batch.size}
        if heard:
            hooks.batch("test", "begin", number, logs)
        values = session.run(fetches, feed(batch))[: len(names)]
        means.add(values, batch.size)
        if heard:
            logs.update(zip(names, values, strict=True))
            hooks.batch("test", "end", number, logs)
    model.stop_training = stopped
    hooks.end("test")
    return means.results()


def evaluate(model: Any, source: Any, verbose: int, callbacks: Any) -> list:
    """The loss and the metrics, for `Model.evaluate`."""
    if not model.outputs:
        source.first()
    names = list(model.metrics_names)
    hooks = _listed(model, callbacks, source, verbose, 1, metrics=names, alone=True)
    return _evaluate(model, source, names, hooks)


def predict(model: Any, source: Any, verbose: int, callbacks: Any) -> list:
    """The outputs, for `Model.predict`."""
    if not model.outputs:
        source.first()
    hooks = _listed(model, callbacks, source, verbose, 1, metrics=[], alone=True)
    fetches = model._fetches("predict")
    session = state.get_session()
    parts: list[list] = [[] for _ in model.outputs]
    feed = model._feeder(None)
    hooks.begin("predict")
    for number, batch in enumerate(source.epoch()):
        logs = {"batch": number, "size": batch.size}
        hooks.batch("predict", "begin", number, logs)
        values = session.run(fetches, feed(batch))[: len(parts)]
        for kept, value in zip(parts, values, strict=True):
            kept.append(value)
        hooks.batch("predict", "end", number, logs)
    hooks.end("predict")
    return [np.concatenate(kept) if len(kept) != 1 else kept[0] for kept in parts]
