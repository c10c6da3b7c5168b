"""The base of `tf.keras.callbacks`, and those that every training has: the list, the history, the progress bar."""

from __future__ import annotations

from typing import Any

from tensorfleet_legacy.keras.utils.generic_utils_progbar import Progbar


class Callback:
    """Base of callbacks: what to do at the ends of training, of epochs and of batches.

    `self.model` is the model and `self.params` say how it is trained. A callback of your own overrides some methods.
    """

    def __init__(self) -> None:
        self.validation_data: Any = None
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_params(self, params: dict[str, Any]) -> None:
        """Called with how the model is trained."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Called with the model."""
        self.model = model

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """The old name of `on_train_batch_begin`."""

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """The old name of `on_train_batch_end`."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Before an epoch."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """After an epoch, with its loss and metrics, those of validation named `val_...`."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch is trained."""
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch was trained, with its loss and the metrics so far."""
        self.on_batch_end(batch, logs)

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch is evaluated."""

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch was evaluated."""

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch is predicted."""

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch was predicted."""

    def on_train_begin(self, logs: Any = None) -> None:
        """Before training."""

    def on_train_end(self, logs: Any = None) -> None:
        """After training."""

    def on_test_begin(self, logs: Any = None) -> None:
        """Before evaluation."""

    def on_test_end(self, logs: Any = None) -> None:
        """After evaluation."""

    def on_predict_begin(self, logs: Any = None) -> None:
        """Before prediction."""

    def on_predict_end(self, logs: Any = None) -> None:
        """After prediction."""


_BATCHES = [f"on_{mode}_batch_{end}" for mode in ("train", "test", "predict") for end in ("begin", "end")]


def _acts(callback: Any, hook: str) -> bool:
    """Whether a callback does something at a batch: most do not, and cost nothing then."""
    names = [hook, hook.replace("train_", "")] if "train" in hook else [hook]
    return any(
        getattr(getattr(callback, n, None), "__func__", None) is not getattr(Callback, n) for n in names
    )


class CallbackList:
    """Callbacks as one."""

    def __init__(self, callbacks: Any = None, queue_length: int = 10) -> None:
        self.callbacks = list(callbacks or [])
        self.params: dict[str, Any] = {}
        self.model: Any = None
        self._sort()

    def _sort(self) -> None:
        self._active = {
            hook: [getattr(c, hook) for c in self.callbacks if _acts(c, hook)] for hook in _BATCHES
        }

    def append(self, callback: Any) -> None:
        """Adds one."""
        self.callbacks.append(callback)
        self._sort()

    def set_params(self, params: dict[str, Any]) -> None:
        """Tells all how the model is trained."""
        self.params = params
        for callback in self.callbacks:
            callback.set_params(params)

    def set_model(self, model: Any) -> None:
        """Tells all the model."""
        self.model = model
        for callback in self.callbacks:
            callback.set_model(model)

    def acts_on(self, mode: str) -> bool:
        """Whether any does something at batches of "train", "test" or "predict"."""
        return bool(self._active[f"on_{mode}_batch_begin"] or self._active[f"on_{mode}_batch_end"])

    def batch(self, mode: str, end: str, batch: int, logs: Any) -> None:
        """Calls what the callbacks do at the "begin" or the "end" of a batch."""
        for hook in self._active[f"on_{mode}_batch_{end}"]:
            hook(batch, logs)

    def _all(self, hook: str, *args: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, hook)(*args)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Before an epoch."""
        self._all("on_epoch_begin", epoch, {} if logs is None else logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """After an epoch."""
        self._all("on_epoch_end", epoch, {} if logs is None else logs)

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch is trained."""
        self.batch("train", "begin", batch, {} if logs is None else logs)

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch was trained."""
        self.batch("train", "end", batch, {} if logs is None else logs)

    on_train_batch_begin, on_train_batch_end = on_batch_begin, on_batch_end

    def begin(self, mode: str) -> None:
        """Before training, evaluation or prediction."""
        self._all(f"on_{mode}_begin", {})

    def end(self, mode: str) -> None:
        """After training, evaluation or prediction."""
        self._all(f"on_{mode}_end", {})

    def on_train_begin(self, logs: Any = None) -> None:
        """Before training."""
        self.begin("train")

    def on_train_end(self, logs: Any = None) -> None:
        """After training."""
        self.end("train")

    def __iter__(self) -> Any:
        return iter(self.callbacks)


class History(Callback):
    """Keeps the losses and metrics of all epochs, in `history`; `fit` returns it."""

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list] = {}
        self.epoch: list[int] = []

    def on_train_begin(self, logs: Any = None) -> None:
        self.epoch = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Keeps an epoch."""
        self.epoch.append(epoch)
        for key, value in (logs or {}).items():
            self.history.setdefault(key, []).append(value)


class BaseLogger(Callback):
    """Puts the means over the epoch's batches into its logs; those in `stateful_metrics` as they are last."""

    def __init__(self, stateful_metrics: Any = None) -> None:
        super().__init__()
        self.stateful_metrics = set(stateful_metrics or [])

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.seen = 0
        self.totals: dict[str, float] = {}

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        logs = logs or {}
        size = logs.get("size", 0) * (logs.get("num_steps", 1))
        self.seen += size
        for key, value in logs.items():
            if key in self.stateful_metrics:
                self.totals[key] = value
            else:
                self.totals[key] = self.totals.get(key, 0) + value * size

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Writes the means."""
        for key in self.params.get("metrics", ()) if logs is not None else ():
            if key in self.totals:
                plain = key in self.stateful_metrics
                logs[key] = self.totals[key] if plain else self.totals[key] / self.seen


class ProgbarLogger(Callback):
    """Shows the progress of each epoch, in `count_mode` "samples" or "steps"."""

    def __init__(self, count_mode: str = "samples", stateful_metrics: Any = None) -> None:
        super().__init__()
        if count_mode not in ("samples", "steps"):
            raise ValueError(f"Unknown `count_mode`: {count_mode}")
        self.use_steps = count_mode == "steps"
        self.stateful_metrics = set(stateful_metrics or [])
        self.progbar: Any = None
        self.target: Any = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Learns how much there is to do."""
        self.verbose, self.epochs = self.params["verbose"], self.params["epochs"]

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Starts the bar."""
        self.seen = 0
        self.target = self.params["steps"] if self.use_steps else self.params["samples"]
        if self.verbose and self.epochs > 1:
            print(f"Epoch {epoch + 1}/{self.epochs}")
        self._start_bar()

    def _start_bar(self) -> None:
        self.progbar = Progbar(
            self.target,
            verbose=self.verbose,
            stateful_metrics=self.stateful_metrics,
            unit_name="step" if self.use_steps else "sample",
        )

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Moves the bar; the last batch is shown with the epoch's end."""
        logs = logs or {}
        self.seen += 1 if self.use_steps else logs.get("size", 0)
        values = [(k, logs[k]) for k in self.params["metrics"] if k in logs]
        if self.verbose and (self.target is None or self.seen < self.target):
            self.progbar.update(self.seen, values)
        else:
            self._left = values

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Ends the bar."""
        if not self.verbose:
            return
        values = [(k, (logs or {})[k]) for k in self.params["metrics"] if k in (logs or {})]
        self.progbar.stateful_metrics |= {k for k, _ in values}  # the epoch's own means
        if self.progbar.target is None or self.seen < self.progbar.target:
            self.progbar.target = self.seen
        self.progbar.update(self.seen, values)

    def on_test_begin(self, logs: Any = None) -> None:
        """Starts the bar of an evaluation that is not part of training."""
        if self.params.get("alone"):
            self.verbose, self.seen = self.params["verbose"], 0
            self.target = self.params["steps"] if self.use_steps else self.params["samples"]
            self._start_bar()

    def _alone(self, logs: Any) -> None:
        if self.params.get("alone") and self.verbose:
            self.seen += 1 if self.use_steps else (logs or {}).get("size", 0)
            values = [(k, logs[k]) for k in self.params["metrics"] if k in logs]
            self.progbar.update(self.seen, values)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """Moves the bar of an evaluation."""
        self._alone(logs)

    on_predict_begin = on_test_begin

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """Moves the bar of a prediction."""
        self._alone(logs)

    def on_test_end(self, logs: Any = None) -> None:
        """Ends a bar whose length was not known."""
        if self.params.get("alone") and self.verbose == 1 and self.target is None and self.seen:
            print()

    on_predict_end = on_test_end
