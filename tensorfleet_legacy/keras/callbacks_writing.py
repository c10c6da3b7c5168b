"""Callbacks that write files: checkpoints, tables, summaries."""

from __future__ import annotations

import csv
import importlib
import json
import os
from typing import Any

import numpy as np

from tensorfleet.base import logging
from tensorfleet.base.naming import find
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.callbacks import Callback
from tensorfleet_legacy.keras.callbacks_control import better


class ModelCheckpoint(Callback):
    """Saves the model after each epoch, or only the best; `filepath` may contain "{epoch}" and values of the logs.

    `save_freq` is "epoch", or a number of examples after which to save.
    """

    def __init__(
        self,
        filepath: str,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: Any = "epoch",
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise ValueError(f"Unrecognized save_freq: {save_freq}")
        load = kwargs.pop("load_weights_on_restart", False)
        self.period = kwargs.pop("period", 1)
        if kwargs:
            raise TypeError(f"Invalid arguments: {sorted(kwargs)}")
        self.filepath, self.monitor, self.verbose = str(filepath), monitor, verbose
        self.save_best_only, self.save_weights_only = save_best_only, save_weights_only
        self.save_freq, self.load_weights_on_restart = save_freq, load
        self.monitor_op, self.best = better(mode, monitor, "ModelCheckpoint")
        self.epochs_since_last_save = 0
        self._samples = 0
        self._current_epoch = 0

    def on_train_begin(self, logs: Any = None) -> None:
        """Loads the last checkpoint, when that was asked for."""
        result = self.filepath if os.path.exists(self.filepath) else None
        if self.load_weights_on_restart and (result or os.path.exists(f"{self.filepath}.index")):
            self.model.load_weights(self.filepath)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Remembers the epoch."""
        self._current_epoch = epoch

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Saves after so many examples."""
        if isinstance(self.save_freq, int):
            self._samples += (logs or {}).get("size", 1)
            if self._samples >= self.save_freq:
                self._save(self._current_epoch, logs or {})
                self._samples = 0

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Saves."""
        self.epochs_since_last_save += 1
        if self.save_freq == "epoch" and self.epochs_since_last_save >= self.period:
            self.epochs_since_last_save = 0
            self._save(epoch, logs or {})

    def _save(self, epoch: int, logs: dict) -> None:
        values = {k: v for k, v in logs.items() if k not in ("batch", "size")}
        try:
            path = self.filepath.format(epoch=epoch + 1, **values)
        except KeyError as e:
            raise KeyError(
                f'Failed to format this callback filepath: "{self.filepath}". Reason: {e}'
            ) from None
        if self.save_best_only:
            current = logs.get(self.monitor)
            if current is None:
                logging.warning(f"Can save best model only with {self.monitor} available, skipping.")
                return
            if not self.monitor_op(current, self.best):
                if self.verbose > 0:
                    print(f"\nEpoch {epoch + 1:05d}: {self.monitor} did not improve from {self.best:0.5f}")
                return
            if self.verbose > 0:
                print(
                    f"\nEpoch {epoch + 1:05d}: {self.monitor} improved from {self.best:0.5f} to {current:0.5f}, saving "
                    f"model to {path}"
                )
            self.best = current
        elif self.verbose > 0:
            print(f"\nEpoch {epoch + 1:05d}: saving model to {path}")
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        if self.save_weights_only:
            self.model.save_weights(path, overwrite=True)
        else:
            self.model.save(path, overwrite=True)


class CSVLogger(Callback):
    """Writes the values of each epoch as a line of a table."""

    def __init__(self, filename: str, separator: str = ",", append: bool = False) -> None:
        super().__init__()
        self.filename, self.sep, self.append = str(filename), separator, append
        self.writer: Any = None
        self.keys: list[str] | None = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Opens the file."""
        has = self.append and os.path.exists(self.filename) and os.path.getsize(self.filename) > 0
        self.append_header = not has
        self.csv_file = open(self.filename, "a" if self.append else "w", newline="")  # noqa: SIM115

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Writes a line."""
        logs = logs or {}
        self.keys = sorted(logs) if self.keys is None else self.keys
        if self.writer is None:
            names = ["epoch", *self.keys]
            self.writer = csv.DictWriter(
                self.csv_file, fieldnames=names, delimiter=self.sep, lineterminator="\n"
            )
            if self.append_header:
                self.writer.writeheader()
        self.writer.writerow({"epoch": epoch, **{k: _cell(logs.get(k, "NA")) for k in self.keys}})
        self.csv_file.flush()

    def on_train_end(self, logs: Any = None) -> None:
        """Closes the file."""
        self.csv_file.close()
        self.writer = None


def _cell(value: Any) -> Any:
    if isinstance(value, str) or np.ndim(value) == 0:
        return value
    return f'"[{", ".join(map(str, value))}]"'


class TensorBoard(Callback):
    """Writes losses, metrics, histograms of weights and the graph where TensorBoard reads them.

    With `update_freq` "batch", or a number of examples, values are written within epochs too.
    """

    def __init__(
        self,
        log_dir: str = "./logs",
        histogram_freq: int = 0,
        batch_size: int = 32,
        write_graph: bool = True,
        write_grads: bool = False,
        write_images: bool = False,
        embeddings_freq: int = 0,
        embeddings_layer_names: Any = None,
        embeddings_metadata: Any = None,
        embeddings_data: Any = None,
        update_freq: Any = "epoch",
        profile_batch: int = 2,
    ) -> None:
        super().__init__()
        for name, value in (("write_grads", write_grads), ("embeddings_freq", embeddings_freq)):
            if value:
                logging.warning(f"`{name}` has no effect on the TensorBoard callback here.")
        self.log_dir, self.histogram_freq, self.write_graph = str(log_dir), histogram_freq, write_graph
        self.write_images, self.batch_size = write_images, batch_size
        self.update_freq = 1 if update_freq == "batch" else update_freq
        self.writer: Any = None
        self.merged: Any = None
        self._samples_seen = self._samples_at_last_write = self._batches_seen = 0

    def set_model(self, model: Any) -> None:
        """Opens the file, and adds the summaries of weights to the graph."""
        self.model = model
        graph = state.get_session().graph
        if self.histogram_freq and self.merged is None:
            with graph.as_default():
                results = []
                for layer in model.layers:
                    for weight in layer.weights:
                        name = weight.name.replace(":", "_")
                        results.append(find("summary.histogram")(name, weight))
                        if self.write_images:
                            results.append(find("summary.image")(name, _picture(weight)))
                self.merged = find("summary.merge")(results) if results else None
        self.writer = find("summary.FileWriter")(self.log_dir, graph if self.write_graph else None)

    def _write(self, values: dict, step: int) -> None:
        summary = find("Summary")()
        for name, value in values.items():
            if np.ndim(value) == 0:
                summary.value.add(tag=name, simple_value=float(value))
        self.writer.add_summary(summary, step)
        self.writer.flush()

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Writes the values of a batch, when that was asked for."""
        logs = logs or {}
        self._samples_seen += logs.get("size", 1)
        if self.update_freq != "epoch":
            since = self._samples_seen - self._samples_at_last_write
            if since >= self.update_freq:
                values = {f"batch_{k}": v for k, v in logs.items() if k not in ("batch", "size", "num_steps")}
                self._write(values, self._batches_seen)
                self._samples_at_last_write = self._samples_seen
        self._batches_seen += 1

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Writes the values of an epoch."""
        values = {f"epoch_{k}": v for k, v in (logs or {}).items() if k not in ("batch", "size", "num_steps")}
        self._write(values, epoch if self.update_freq == "epoch" else self._samples_seen)
        if self.merged is not None and epoch % self.histogram_freq == 0:
            self.writer.add_summary(state.get_session().run(self.merged), epoch)
            self.writer.flush()

    def on_train_end(self, logs: Any = None) -> None:
        """Closes the file."""
        self.writer.close()


def _picture(weight: Any) -> Any:
    """A weight as a batch of pictures of one channel."""
    image = find("squeeze")(weight)
    rank = image.shape.ndims
    if rank == 2:
        high, wide = image.shape.as_list()
        image = find("transpose")(image) if high > wide else image
        return find("expand_dims")(find("expand_dims")(image, 0), -1)
    if rank == 3:
        return find("expand_dims")(find("transpose")(image, [2, 0, 1]), -1)
    return find("reshape")(image, [1, -1, 1, 1])


class RemoteMonitor(Callback):
    """Sends what an epoch shows to a server, as a form or as JSON. Needs the package requests."""

    def __init__(
        self,
        root: str = "http://localhost:9000",
        path: str = "/publish/epoch/end/",
        field: str = "data",
        headers: dict[str, str] | None = None,
        send_as_json: bool = False,
    ) -> None:
        super().__init__()
        self.root, self.path, self.field = root, path, field
        self.headers, self.send_as_json = headers, send_as_json

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Sends it; a server that does not answer is only warned of."""
        try:
            requests = importlib.import_module("requests")
        except ImportError:
            raise ImportError(
                "RemoteMonitor requires the `requests` library: `pip install requests`."
            ) from None
        send = {"epoch": epoch, **(logs or {})}
        text = json.dumps(send, default=float)
        how: dict[str, Any] = (
            {"json": json.loads(text)} if self.send_as_json else {"data": {self.field: text}}
        )
        try:
            requests.post(self.root + self.path, headers=self.headers, **how)
        except requests.exceptions.RequestException:
            logging.warning(f"Warning: could not reach RemoteMonitor root server at {self.root}")
