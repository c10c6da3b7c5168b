"""Callbacks that change training: they stop it, or set its learning rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import logging
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.callbacks import Callback


def better(mode: str, monitor: str, what: str) -> tuple[Callable, float]:
    """How two values compare in a mode, and the worst value of all."""
    if mode not in ("auto", "min", "max"):
        logging.warning(f"{what} mode {mode} is unknown, fallback to auto mode.")
        mode = "auto"
    up = mode == "max" or (mode == "auto" and ("acc" in monitor or monitor.startswith("fmeasure")))
    return (np.greater, -np.inf) if up else (np.less, np.inf)


def _missing(what: str, monitor: str, logs: dict) -> None:
    logging.warning(
        f"{what} conditioned on metric `{monitor}` which is not available. Available metrics are: {','.join(logs)}"
    )


class TerminateOnNaN(Callback):
    """Ends training when the loss is no number."""

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Looks at the loss."""
        loss = (logs or {}).get("loss")
        if loss is not None and not np.isfinite(loss):
            print(f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True


class EarlyStopping(Callback):
    """Ends training when a value has not become better for `patience` epochs."""

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        super().__init__()
        self.monitor, self.patience, self.verbose = monitor, patience, verbose
        self.baseline, self.restore_best_weights = baseline, restore_best_weights
        self.monitor_op, self._worst = better(mode, monitor, "EarlyStopping")
        self.min_delta = abs(min_delta) * (1 if self.monitor_op is np.greater else -1)
        self.wait, self.stopped_epoch = 0, 0
        self.best_weights: Any = None

    def on_train_begin(self, logs: Any = None) -> None:
        self.wait, self.stopped_epoch = 0, 0
        self.best = self._worst if self.baseline is None else self.baseline

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Compares."""
        current = self.get_monitor_value(logs or {})
        if current is None:
            return
        if self.monitor_op(current - self.min_delta, self.best):
            self.best, self.wait = current, 0
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            return
        self.wait += 1
        if self.wait >= self.patience:
            self.stopped_epoch = epoch
            self.model.stop_training = True
            if self.restore_best_weights and self.best_weights is not None:
                if self.verbose > 0:
                    print("Restoring model weights from the end of the best epoch.")
                self.model.set_weights(self.best_weights)

    def on_train_end(self, logs: Any = None) -> None:
        """Says when it stopped."""
        if self.stopped_epoch > 0 and self.verbose > 0:
            print(f"Epoch {self.stopped_epoch + 1:05d}: early stopping")

    def get_monitor_value(self, logs: dict) -> Any:
        """The value it looks at."""
        result = logs.get(self.monitor)
        if result is None:
            _missing("Early stopping", self.monitor, logs)
        return result


class LearningRateScheduler(Callback):
    """Sets the learning rate before each epoch to `schedule(epoch)`, or `schedule(epoch, rate)`."""

    def __init__(self, schedule: Callable, verbose: int = 0) -> None:
        super().__init__()
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Sets it."""
        optimizer = self.model.optimizer
        if not hasattr(optimizer, "lr"):
            raise ValueError('Optimizer must have a "lr" attribute.')
        try:
            rate = self.schedule(epoch, float(state.get_value(optimizer.lr)))
        except TypeError:  # a schedule of the epoch alone
            rate = self.schedule(epoch)
        if not isinstance(rate, (float, np.floating)):
            raise ValueError('The output of the "schedule" function should be float.')
        state.set_value(optimizer.lr, rate)
        if self.verbose > 0:
            print(f"\nEpoch {epoch + 1:05d}: LearningRateScheduler reducing learning rate to {rate}.")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Shows the rate."""
        if logs is not None:
            logs["lr"] = state.get_value(self.model.optimizer.lr)


class ReduceLROnPlateau(Callback):
    """Multiplies the learning rate with `factor` when a value has not become better for `patience` epochs."""

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 0.0001,
        cooldown: int = 0,
        min_lr: float = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if factor >= 1.0:
            raise ValueError("ReduceLROnPlateau does not support a factor >= 1.0.")
        self.monitor, self.factor, self.patience, self.verbose = monitor, factor, patience, verbose
        self.min_delta = kwargs.pop("epsilon", min_delta)
        self.cooldown, self.min_lr, self.mode = cooldown, min_lr, mode
        self.on_train_begin()

    def on_train_begin(self, logs: Any = None) -> None:
        compare, self.best = better(self.mode, self.monitor, "Learning rate reduction")
        sign = 1 if compare is np.greater else -1
        self.monitor_op = lambda a, b: compare(a, b + sign * self.min_delta)
        self.cooldown_counter, self.wait = 0, 0

    def in_cooldown(self) -> bool:
        """Whether it waits after a reduction."""
        return self.cooldown_counter > 0

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Compares, and reduces."""
        logs = {} if logs is None else logs
        rate = self.model.optimizer.lr
        logs["lr"] = state.get_value(rate)
        current = logs.get(self.monitor)
        if current is None:
            _missing("Reduce LR on plateau", self.monitor, logs)
            return
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self.monitor_op(current, self.best):
            self.best, self.wait = current, 0
        elif not self.in_cooldown():
            self.wait += 1
            old = float(state.get_value(rate))
            if self.wait >= self.patience and old > self.min_lr:
                new = max(old * self.factor, self.min_lr)
                state.set_value(rate, new)
                if self.verbose > 0:
                    print(f"\nEpoch {epoch + 1:05d}: ReduceLROnPlateau reducing learning rate to {new}.")
                self.cooldown_counter, self.wait = self.cooldown, 0


class LambdaCallback(Callback):
    """Functions as a callback."""

    def __init__(
        self,
        on_epoch_begin: Callable | None = None,
        on_epoch_end: Callable | None = None,
        on_batch_begin: Callable | None = None,
        on_batch_end: Callable | None = None,
        on_train_begin: Callable | None = None,
        on_train_end: Callable | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.__dict__.update(kwargs)
        given = {name: value for name, value in locals().items() if name.startswith("on_")}
        self.__dict__.update({name: function for name, function in given.items() if function is not None})
