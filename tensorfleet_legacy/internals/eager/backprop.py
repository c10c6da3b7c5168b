"""Gradients by a tape, as TensorFlow's own tests take them; in a graph they are those of `tf.gradients`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tensorfleet.api.variables.base import Variable
from tensorfleet.base import nest
from tensorfleet.base.naming import export, find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.gradients import UnconnectedGradients
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.references import Reference
from tensorfleet.graph.scopes import GraphKeys, get_default_graph


@export("GradientTape", "python.eager.backprop.GradientTape")
class GradientTape:
    """Gradients with respect to the tensors that are watched and to variables."""

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._variables = watch_accessed_variables
        self._watched: set[Reference] = set()
        self._open = self._used = False

    def __enter__(self) -> GradientTape:
        if self._open:
            raise ValueError("Tape is already recording.")
        self._open = True
        self._graph = get_default_graph()
        self._before = len(self._graph.get_operations())
        return self

    def __exit__(self, *error: Any) -> None:
        self._open = False

    def watch(self, tensor: Any) -> None:
        """Gradients with respect to a tensor, or to several, may be asked for."""
        for each in nest.flatten(tensor):
            self._watched.add(Reference(each))

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """A block of which no gradients are taken."""
        if not self._open:
            raise ValueError("Tape is not recording.")
        self._open = False
        try:
            yield
        finally:
            self._open = True

    def watched_variables(self) -> tuple[Any, ...]:
        """The trainable variables that operations made since the tape was opened have used, and those watched."""
        used = {t for op in self._graph.get_operations()[self._before :] for t in op._inputs}
        known = [v for v in self._graph.get_collection(GraphKeys.GLOBAL_VARIABLES) if self._watches(v)]
        return tuple(v for v in known if Reference(v) in self._watched or not used.isdisjoint(_tensors(v)))

    def reset(self) -> None:
        """Forgets what is watched."""
        self._watched.clear()
        self._used = False

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """The gradients of a target with respect to sources, arranged as these; None where there is none."""
        if self._used and not self._persistent:
            raise RuntimeError("GradientTape.gradient can only be called once on non-persistent tapes.")
        self._used = True
        flat = nest.flatten(sources)
        targets = [to_tensor(t) for t in nest.flatten(target)]
        given = None if output_gradients is None else nest.flatten(output_gradients)
        known = [x for x in flat if self._watches(x)]
        result = (
            find("gradients")(targets, known, given, unconnected_gradients=unconnected_gradients)
            if known
            else []
        )
        by_source = {Reference(x): g for x, g in zip(known, result, strict=True)}
        zeros = UnconnectedGradients(unconnected_gradients) == UnconnectedGradients.ZERO
        rest = lambda x: find("zeros_like")(x) if zeros else None  # noqa: E731
        items = [by_source[Reference(x)] if Reference(x) in by_source else rest(x) for x in flat]
        return nest.pack_sequence_as(sources, items)

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The gradient of each element of a target: of the target's shape, then the source's."""
        target = to_tensor(target)
        result = self._rows(target, sources, unconnected_gradients, parallel_iterations)

        def shaped(rows: Any, source: Any) -> Any:
            if rows is None:
                return None
            return _reshaped(rows, target, find("shape")(source), source.shape)

        flat = [shaped(r, s) for r, s in zip(result, nest.flatten(sources), strict=True)]
        return nest.pack_sequence_as(sources, flat)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The gradients of each row of a target with respect to the same row of a source."""
        target = to_tensor(target)
        if target.shape.ndims is None or not target.shape[:1].is_compatible_with(source.shape[:1]):
            raise ValueError(
                f"Need first dimension of target shape ({target.shape}) and source shape ({source.shape}) to match."
            )
        shape = find("shape")(target)
        columns = find("transpose")(find("reshape")(target, [shape[0], -1]))
        # No row depends on another's source: a column's gradients are those of its rows.
        sums = find("reduce_sum")(columns, 1)
        (rows,) = self._rows(sums, [source], unconnected_gradients, parallel_iterations)
        if rows is None:
            return None
        order = [1, 0, *range(2, rows.shape.ndims)]
        result = _reshaped(
            find("transpose")(rows, order), target, find("shape")(source)[1:], source.shape[1:]
        )
        return result

    def _rows(self, target: Tensor, sources: Any, unconnected: Any, parallel: int | None) -> list:
        """The gradients of each element of a target, one behind the other."""
        if self._used and not self._persistent:
            raise RuntimeError(
                "Non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"
            )
        persistent, self._persistent = self._persistent, True
        elements = find("reshape")(target, [-1])
        try:
            tried = self.gradient(elements, nest.flatten(sources), unconnected_gradients=unconnected)
            connected = [i for i, g in enumerate(tried) if g is not None]

            def one(i: Tensor) -> list:
                grads = self.gradient(find("gather")(elements, i), nest.flatten(sources))
                return [find("convert_to_tensor")(grads[c]) for c in connected]

            kinds = [tried[c].dtype for c in connected]
            places = find("range")(find("size")(elements))
            options = {"parallel_iterations": parallel}
            rows = find("map_fn")(one, places, dtype=kinds, **options) if connected else []
        finally:
            self._persistent = persistent
        by_place = dict(zip(connected, rows, strict=True))
        return [by_place.get(i) for i in range(len(tried))]

    def _watches(self, source: Any) -> bool:
        if isinstance(source, Variable):
            return Reference(source) in self._watched or (self._variables and source.trainable)
        return Reference(source) in self._watched or self._follows(source)

    def _follows(self, source: Any) -> bool:
        """Whether a tensor was made of one that is watched."""
        stack = list(source.op.inputs) if isinstance(source, Tensor) else []
        seen = set()
        while stack:
            tensor = stack.pop()
            if Reference(tensor) in self._watched:
                return True
            if tensor.op not in seen:
                seen.add(tensor.op)
                stack.extend(tensor.op.inputs)
        return False


def _tensors(variable: Any) -> list[Any]:
    """The tensors by which a variable, or one of its copies, is used."""
    names = ("_variable", "_graph_element", "_snapshot", "_cached")
    parts = getattr(variable, "_copies", (variable,))
    return [t for v in parts for t in (getattr(v, n, None) for n in names) if t is not None]


def _reshaped(rows: Tensor, target: Tensor, shape: Any, known: Any) -> Tensor:
    """Rows of gradients with the target's shape in front."""
    result = find("reshape")(rows, find("concat")([find("shape")(target), shape], 0))
    result.set_shape(target.shape.concatenate(known))
    return result
