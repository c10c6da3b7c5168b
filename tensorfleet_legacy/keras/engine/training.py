"""Keras's models in training: `compile`, `fit`, `evaluate`, `predict`, and one batch of each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.distribute import context
from tensorfleet.base import errors, logging
from tensorfleet.base.arguments import signature_of, taking
from tensorfleet.graph.apply import constant
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.engine import data_adapter as feeding
from tensorfleet_legacy.keras.engine import training_arrays as loops
from tensorfleet_legacy.keras.engine.data_adapter import Batch
from tensorfleet_legacy.keras.engine.training_inspection import Inspected
from tensorfleet_legacy.keras.engine.training_utils import Compiled

_UNCOMPILED = "You must compile your model before training/testing. Use `model.compile(optimizer, loss)`."

# How generators are read; nothing depends on it here.
_QUEUE = "max_queue_size=10, workers=1, use_multiprocessing=False"


class Trained(Inspected):
    """The half of a model that trains."""

    optimizer: Any
    _compiled: Compiled | None = None
    _strategy: Any = None
    _options: dict[str, Any] | None = None
    stop_training = False

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        metrics: Any = None,
        loss_weights: Any = None,
        sample_weight_mode: Any = None,
        weighted_metrics: Any = None,
        target_tensors: Any = None,
        distribute: Any = None,
        **kwargs: Any,
    ) -> None:
        """Says how to train: with which optimizer, losses and metrics. Only then can it be fitted or evaluated."""
        from tensorfleet_legacy.keras import losses as penalties
        from tensorfleet_legacy.keras import optimizers as optimizing

        if distribute is not None:
            raise ValueError(
                "`distribute` is not supported: make and compile the model inside `with strategy.scope():`, or give "
                "K.set_session a session of the cluster, with variables placed by tf.train.replica_device_setter."
            )
        for key in kwargs:
            if key not in ("run_eagerly", "experimental_run_tf_function", "cloning"):
                raise TypeError(f"Invalid keyword argument(s) in `compile`: {{{key!r}}}")
        self.optimizer = optimizing.get(optimizer)
        if isinstance(loss, str):
            penalties.get(loss)
        self.loss, self.loss_weights = loss, loss_weights
        self.sample_weight_mode = sample_weight_mode
        self._compile_metrics, self._compile_weighted_metrics = metrics, weighted_metrics
        self._options = {
            "loss": loss,
            "metrics": metrics,
            "loss_weights": loss_weights,
            "sample_weight_mode": sample_weight_mode,
            "weighted_metrics": weighted_metrics,
            "target_tensors": target_tensors,
        }
        self._compiled = None
        self._strategy = context.get_strategy() if context.has_strategy() else None
        if self.outputs:
            self._made()

    def _made(self) -> Compiled:
        """The losses and metrics, built when inputs and outputs are known."""
        if self._options is None:
            raise RuntimeError(_UNCOMPILED)
        if self._compiled is None:
            with self._graph_of_model().as_default(), self._in_scope():
                self._compiled = Compiled(self, self._options)
        return self._compiled

    def _in_scope(self) -> Any:
        """The scope of the strategy with which the model was compiled."""
        strategy = self._strategy
        if strategy is None or context.current().strategy is strategy:
            return nullcontext()
        return strategy.scope()

    def _leave(self, session: Any) -> None:
        """Workers end a training together: the one at which they meet must not be gone before."""
        workers = session.graph.__dict__.get("_of_workers")
        if workers is None or workers._num_workers == 1:
            return
        with session.graph.as_default():
            met = session.graph.__dict__.get("_workers_met")
            if met is None:
                met = workers._sum_over_workers([constant(1.0)], context.ReduceOp.SUM)[0]
                session.graph.__dict__["_workers_met"] = met
        try:
            session.run(met)
        except errors.OpError as error:
            logging.info("Not all workers end together: %s", error)

    def _graph_of_model(self) -> Any:
        return self.outputs[0].graph

    @property
    def metrics_names(self) -> list[str]:
        """The names of what `evaluate` and `train_on_batch` give."""
        if self._options is not None and self.outputs:
            return self._made().names
        return ["loss"]

    @property
    def metrics(self) -> list:
        """The metrics, as objects."""
        return list(self._made().metrics) if self._options is not None and self.outputs else []

    def reset_metrics(self) -> None:
        """Starts the metrics over."""
        self._made().reset()

    # -- from data to feeds --------------------------------------------------------------------------

    def _arrays(self, x: Any, y: Any, sample_weight: Any, class_weight: Any, targets: bool = True) -> Batch:
        """Arrays in the model's order, checked."""
        self._ensure_inputs(x)
        feeds = self._fed_inputs()
        inputs = feeding.standardized(x, [n for n, _ in feeds], [s for _, s in feeds], "input")
        result: list = []
        weights: list = []
        if targets:
            endpoints = self._made().trained
            names = [e.name for e in endpoints]
            fed = [e for e in endpoints if e.target.op.type == "Placeholder"]
            if y is not None or len(fed) == len(endpoints) > 0:
                if y is None:
                    raise ValueError(f"Target data is missing: the model has the losses of {names}.")
                result = feeding.standardized(y, names, [None] * len(names), "target")
                for endpoint, target in zip(endpoints, result, strict=True):
                    endpoint.check(target)
            else:
                result = [None] * len(endpoints)
            weights = self._weights_of(result, names, sample_weight, class_weight)
        feeding.check_lengths(inputs, result, weights)
        return Batch(inputs, result, weights, len(inputs[0]) if inputs else 0)

    def _weights_of(self, targets: list, names: list[str], given: Any, by_class: Any) -> list:
        """The weights of the examples for each output: those given times those of their classes."""
        if given is None and by_class is None:
            return [None] * len(names)
        if isinstance(given, dict):
            weights = [given.get(n) for n in names]
        elif isinstance(given, (list, tuple)) and len(names) > 1:
            weights = list(given)
        else:
            weights = [given] * len(names)
        classes = [by_class] * len(names)
        if isinstance(by_class, dict) and any(n in by_class for n in names):
            classes = [by_class.get(n) for n in names]
        elif isinstance(by_class, (list, tuple)):
            classes = list(by_class)
        result = []
        for target, weight, of_class in zip(targets, weights, classes, strict=True):
            if weight is not None:
                weight = np.asarray(weight, state.floatx())
                if weight.ndim > 1 and self.sample_weight_mode != "temporal":
                    raise ValueError(
                        f"Found a sample_weight array with shape {weight.shape}. In order to use timestep-wise sample "
                        'weights, you should specify sample_weight_mode="temporal" in compile().'
                    )
            if of_class:
                output = feeding.class_weights(target, of_class)
                weight = output if weight is None else weight * output
            result.append(weight)
        return result

    def _size_of_batches(self, given: int | None, x: Any) -> int | None:
        """The batch size given, or the one that the inputs were made with."""
        sizes = (
            {t.shape.as_list()[0] for t in self._input_tensors() if t.shape.ndims} if self.outputs else set()
        )
        result = sizes.pop() if len(sizes) == 1 else None
        if result is None:
            return given
        if given is not None and given != result:
            raise ValueError(
                f"The `batch_size` argument value {given} is incompatible with the specified batch size of your Input "
                f"Layer: {result}"
            )
        if self.stateful and isinstance(x, np.ndarray) and len(x) % result:
            raise ValueError(
                "In a stateful network, you should only pass inputs with a number of samples that can be divided by "
                f"the batch size. Found: {len(x)} samples"
            )
        return result

    def _batch_of(self, item: Any, class_weight: Any = None, targets: bool = True) -> Batch:
        x, y, weight = feeding.split(item)
        return self._arrays(x, y, weight, class_weight, targets)

    def _feeder(self, training: bool | None) -> Callable[[Batch], dict]:
        """A function that makes the feeds of a batch; `training` None is a prediction."""
        inputs = self._input_tensors()
        ends = [] if training is None else [(e.target, e.sample_weight) for e in self._made().trained]
        phase = self._graph_of_model().__dict__.get("_keras_learning_phase") if training else None
        if isinstance(phase, int):
            phase = None

        def feed(batch: Batch) -> dict:
            fed = dict(zip(inputs, batch.inputs, strict=True))
            for (at, weigh), target, weight in zip(ends, batch.targets, batch.weights, strict=bool(ends)):
                if target is not None:
                    fed[at] = target
                if weight is not None:
                    fed[weigh] = weight
            if phase is not None:
                fed[phase] = True
            return fed

        return feed

    def _fetches(self, mode: str) -> list:
        """The tensors that a step of "train", "test" or "predict" runs."""
        with self._graph_of_model().as_default():
            if mode == "train":
                return self._made().train_fetches
            shown = list(self.outputs) if mode == "predict" else self._made().test_fetches
            # What layers keep from batch to batch changes in every mode.
            return [*shown, *self.state_updates]

    # -- training ------------------------------------------------------------------------------------

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int = 1,
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: Any = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_freq: Any = 1,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Trains for some epochs and returns their `History`.

        Data are arrays (one for each input, in a list or a dictionary by name), a `tf.data` dataset, a generator or
        a `Sequence`; the last three give tuples of inputs, targets and maybe weights.
        """
        if "nb_epoch" in kwargs:
            epochs = kwargs.pop("nb_epoch")
        if kwargs:
            raise TypeError(f"Unrecognized keyword arguments: {kwargs}")
        if self._options is None:
            raise RuntimeError(_UNCOMPILED)
        batch_size = self._size_of_batches(batch_size, x)
        tensors = feeding.tensor_items(x, y, sample_weight)
        if tensors is not None:
            x, y, sample_weight = tensors, None, None
        if feeding.is_items(x):
            _refuse_beside(x, y=y, sample_weight=sample_weight, validation_split=validation_split or None)
            source: Any = feeding.ItemBatches(x, steps_per_epoch, self, shuffle, class_weight)
            held = None
        else:
            arrays = self._arrays(x, y, sample_weight, class_weight)
            if validation_split and validation_data is None:
                arrays, held = _split(arrays, validation_split)
            else:
                held = None
            source = feeding.ArrayBatches(
                arrays.inputs, arrays.targets, arrays.weights, batch_size, shuffle, steps_per_epoch
            )
        validation = self._validation(validation_data, held, batch_size, validation_steps)
        generated = feeding.is_items(x) and not source._dataset
        return loops.fit(
            self,
            source,
            epochs=epochs,
            initial_epoch=initial_epoch,
            verbose=verbose,
            callbacks=callbacks,
            validation=validation,
            validation_freq=validation_freq,
            announce=not generated,
        )

    def _validation(self, data: Any, held: Batch | None, batch_size: int | None, steps: int | None) -> Any:
        if data is None and held is None:
            return None
        if held is None and feeding.is_items(data):
            return feeding.ItemBatches(data, steps, self, False, None)
        if held is None:
            if not isinstance(data, (list, tuple)) or len(data) not in (2, 3):
                raise ValueError(
                    "When passing a `validation_data` argument, it must contain either 2 items (x_val, y_val), or 3 items "
                    "(x_val, y_val, val_sample_weights), or alternatively it could be a dataset or a dataset or a "
                    f"dataset iterator. However we received `validation_data={str(data)[:200]}`"
                )
            held = self._arrays(data[0], data[1], data[2] if len(data) == 3 else None, None)
        # Shuffled as TensorFlow does, so that what is drawn at random afterwards is the same.
        return feeding.ArrayBatches(held.inputs, held.targets, held.weights, batch_size, True, steps)

    def _source(
        self, x: Any, y: Any, batch_size: int | None, sample_weight: Any, steps: int | None, targets: bool
    ) -> Any:
        batch_size = self._size_of_batches(batch_size, x)
        tensors = feeding.tensor_items(x, y, sample_weight)
        if tensors is not None:
            x, y, sample_weight = tensors, None, None
        if feeding.is_items(x):
            _refuse_beside(x, y=y, sample_weight=sample_weight)
            source = feeding.ItemBatches(x, steps, self, False, None)
            if not targets:
                source.inputs_only()
            return source
        arrays = self._arrays(x, y, sample_weight, None, targets)
        return feeding.ArrayBatches(arrays.inputs, arrays.targets, arrays.weights, batch_size, False, steps)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int = 1,
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> Any:
        """The loss and the metrics over data: a number, or a list in the order of `metrics_names`."""
        if self._options is None:
            raise RuntimeError(_UNCOMPILED)
        source = self._source(x, y, batch_size, sample_weight, steps, True)
        return _plain(loops.evaluate(self, source, verbose, callbacks))

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: int = 0,
        steps: int | None = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> Any:
        """The outputs for data: an array, or a list of them."""
        source = self._source(x, None, batch_size, None, steps, False)
        return _plain(loops.predict(self, source, verbose, callbacks))

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        reset_metrics: bool = True,
    ) -> Any:
        """Trains with one batch, and gives its loss and metrics."""
        return self._on_batch("train", self._arrays(x, y, sample_weight, class_weight), reset_metrics)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, reset_metrics: bool = True
    ) -> Any:
        """The loss and the metrics of one batch."""
        return self._on_batch("test", self._arrays(x, y, sample_weight, None), reset_metrics)

    def _on_batch(self, mode: str, batch: Batch, reset: bool) -> Any:
        fetches = self._fetches(mode)
        session = state.get_session()
        values = session.run(fetches, self._feeder(mode == "train")(batch))
        if reset:
            self.reset_metrics()
        return _plain(values[: len(self._made().names)])

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch."""
        batch = self._arrays(x, None, None, None, targets=False)
        values = state.get_session().run(self._fetches("predict"), self._feeder(None)(batch))
        return _plain(values[: len(self.outputs)])

    # -- the old names -------------------------------------------------------------------------------

    @taking(
        signature_of(
            "generator, steps_per_epoch=None, epochs=1, verbose=1, callbacks=None, validation_data=None, "
            f"validation_steps=None, validation_freq=1, class_weight=None, {_QUEUE}, shuffle=True, initial_epoch=0"
        )
    )
    def fit_generator(self, given: dict[str, Any]) -> Any:
        """Trains with the batches of a generator or a `Sequence`."""
        return self.fit(given.pop("generator"), **given)

    @taking(signature_of(f"generator, steps=None, callbacks=None, {_QUEUE}, verbose=0"))
    def evaluate_generator(self, given: dict[str, Any]) -> Any:
        """The loss and the metrics over the batches of a generator or a `Sequence`."""
        return self.evaluate(given.pop("generator"), **given)

    @taking(signature_of(f"generator, steps=None, callbacks=None, {_QUEUE}, verbose=0"))
    def predict_generator(self, given: dict[str, Any]) -> Any:
        """The outputs for the batches of a generator or a `Sequence`."""
        return self.predict(given.pop("generator"), **given)


def _plain(values: list) -> Any:
    return values[0] if len(values) == 1 else values


def _refuse_beside(x: Any, **others: Any) -> None:
    for name, value in others.items():
        if value is not None:
            raise ValueError(
                f"`{name}` argument is not supported when input `x` is a dataset, a generator or a Sequence, which give "
                f"it themselves. Received: x={x}, {name}={str(value)[:200]}"
            )


def _split(arrays: Batch, share: float) -> tuple[Batch, Batch]:
    """The first examples, and the last `share` of them."""
    if not 0.0 < share < 1.0:
        raise ValueError(f"`validation_split` must be between 0 and 1, got {share}.")
    at = int(arrays.size * (1.0 - share))

    def part(rows: slice, size: int) -> Batch:
        cut = [
            [None if a is None else a[rows] for a in group]
            for group in (arrays.inputs, arrays.targets, arrays.weights)
        ]
        return Batch(cut[0], cut[1], cut[2], size)

    return part(slice(0, at), at), part(slice(at, None), arrays.size - at)
