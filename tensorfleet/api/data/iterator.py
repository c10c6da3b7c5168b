"""`tf.data.Iterator`: the way from a dataset to the tensors of its next element."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tensorfleet.api.data import structure as structures
from tensorfleet.api.data.specs import Described
from tensorfleet.api.data.structure import Nested, Structure, flatten
from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import export, publish
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply, apply_list, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.functions import FunctionGraph, add_function, function_name
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import add_to_collection, colocate_with, get_default_graph

if TYPE_CHECKING:
    from tensorfleet.api.data.dataset import Dataset

# TensorFlow's own number: more calls usually mean a `get_next()` inside a training loop.
_MAX_GET_NEXT_CALLS = 32
_MANY_CALLS_WARNING = (
    "An unusually high number of `Iterator.get_next()` calls was detected. This often indicates that "
    "`Iterator.get_next()` is being called inside a training loop. Call it once, before the loop: running what it "
    "returned gives the next element each time."
)
publish(_MAX_GET_NEXT_CALLS, "python.data.ops.iterator_ops.GET_NEXT_CALL_WARNING_THRESHOLD")
publish(_MANY_CALLS_WARNING, "python.data.ops.iterator_ops.GET_NEXT_CALL_WARNING_MESSAGE")
#: the collection of all iterators of a graph, by their handles
GLOBAL_ITERATORS = "iterators"


@export("data.Iterator", "contrib.data.Iterator")
class Iterator(Described):
    """The state of running through a dataset. `get_next()` gives tensors that are the next element in each run."""

    def __init__(
        self,
        iterator_resource: Tensor | None,
        initializer: Operation | None,
        output_types: Nested,
        output_shapes: Nested,
        output_classes: Nested,
    ) -> None:
        self._iterator_resource = iterator_resource
        self._initializer = initializer
        self._structure = structures.from_legacy(output_types, output_shapes, output_classes)
        self._set_handle()

    @classmethod
    def _of(cls, resource: Tensor, initializer: Operation | None, structure: Structure) -> Iterator:
        result: Iterator = cls.__new__(cls)
        result._iterator_resource, result._initializer, result._structure = resource, initializer, structure
        result._set_handle()
        return result

    def _set_handle(self) -> None:
        self._calls = 0
        if self._iterator_resource is not None:
            with colocate_with(self._iterator_resource):
                self._handle = apply("IteratorToStringHandle", self._iterator_resource)

    @staticmethod
    def from_structure(
        output_types: Nested,
        output_shapes: Nested = None,
        shared_name: str | None = None,
        output_classes: Nested = None,
    ) -> Iterator:
        """An iterator for any dataset of this structure; `make_initializer(dataset)` starts one."""
        structure = structures.from_legacy(output_types, output_shapes, output_classes)
        return Iterator._of(_resource(structure, shared_name), None, structure)

    @staticmethod
    def from_string_handle(
        string_handle: TensorLike,
        output_types: Nested,
        output_shapes: Nested = None,
        output_classes: Nested = None,
    ) -> Iterator:
        """The iterator that a handle, made by `string_handle()`, names when the step runs."""
        structure = structures.from_legacy(output_types, output_shapes, output_classes)
        handle = to_tensor(string_handle, dtypes.string)
        return Iterator._of(
            apply("IteratorFromStringHandleV2", handle, **structures.declared(structure)), None, structure
        )

    @property
    def initializer(self) -> Operation:
        """The operation that starts the iterator, from the beginning."""
        if self._initializer is None:
            raise ValueError("Iterator does not have an initializer.")
        return self._initializer

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Operation:
        """An operation that starts this iterator on a dataset of its structure."""
        mine, theirs = self._structure, dataset._structure
        if not structures.same_form(mine, theirs):
            other = ValueError if structures.leaves_like(mine, theirs) is None else TypeError
            raise other(
                f"Expected output types {structures.types_of(mine)!r} but got dataset with output types "
                f"{structures.types_of(theirs)!r}."
            )
        for a, b in zip(flatten(mine), flatten(theirs), strict=True):
            if not a.shape.is_compatible_with(b.shape):
                raise TypeError(
                    f"Expected output shapes compatible with {structures.shapes_of(mine)!r} but got dataset with "
                    f"output shapes {structures.shapes_of(theirs)!r}."
                )
        with colocate_with(self._iterator_resource):
            return apply_op("MakeIterator", dataset._variant_tensor, self._iterator_resource, name=name)

    def get_next(self, name: str | None = None) -> Any:
        """The components of the next element. All tensors of one call move on together, once per run."""
        self._calls += 1
        if self._calls > _MAX_GET_NEXT_CALLS:
            warnings.warn(_MANY_CALLS_WARNING, stacklevel=2)
        outputs = apply_list(
            "IteratorGetNext", self._iterator_resource, name=name, **structures.declared(self._structure)
        )
        return structures.unpacked(self._structure, outputs)

    def string_handle(self, name: str | None = None) -> Tensor:
        """A string that stands for this iterator, to be fed where `from_string_handle` wants one."""
        if name is not None:
            return apply("IteratorToStringHandle", self._iterator_resource, name=name)
        return self._handle


def _resource(structure: Structure, shared_name: str | None) -> Tensor:
    result = apply(
        "IteratorV2", container="", shared_name=shared_name or "", **structures.declared(structure)
    )
    add_to_collection(GLOBAL_ITERATORS, result)
    return result


def _warn_of_other_graphs(dataset: Dataset) -> None:
    """Warns when a dataset, or one it is made from, was made in another graph than the iterator."""
    here, rest = get_default_graph(), [dataset]
    while rest:
        one = rest.pop()
        if isinstance(one._variant_tensor, Tensor) and one._variant_tensor.graph is not here:
            logging.warning(
                "%s was made in %s, its iterator is in %s. Please ensure that all datasets in the pipeline are "
                "created in the same graph as the iterator.",
                one,
                one._variant_tensor.graph,
                here,
            )
            return
        rest.extend(one._inputs())


def make_initializable(dataset: Dataset, shared_name: str | None) -> Iterator:
    """An iterator over a dataset, and its initializer."""
    _warn_of_other_graphs(dataset)
    resource = _resource(dataset._structure, shared_name)
    with colocate_with(resource):
        initializer = apply_op("MakeIterator", dataset._variant_tensor, resource)
    return Iterator._of(resource, initializer, dataset._structure)


def make_one_shot(dataset: Dataset) -> Iterator:
    """An iterator whose dataset is made by a function, at the first use."""
    _warn_of_other_graphs(dataset)
    outer = get_default_graph()
    body = FunctionGraph(function_name(outer, "_make_dataset"), outer, by_value=True)
    try:
        # By value: the function must make the dataset again from constants, without anything of this graph.
        body.outputs = [body.capture(dataset._variant_tensor)]
    except ValueError as e:
        raise ValueError(
            f"Failed to create a one-shot iterator for a dataset. `Dataset.make_one_shot_iterator()` does not support "
            "datasets that capture stateful objects, such as a `Variable` or `LookupTable`. In these cases, use "
            f"`Dataset.make_initializable_iterator()`. (Original error: {e})"
        ) from None
    name = add_function(body)
    resource = apply("OneShotIterator", dataset_factory=name, **structures.declared(dataset._structure))
    add_to_collection(GLOBAL_ITERATORS, resource)
    return Iterator._of(resource, None, dataset._structure)


@export("data.make_one_shot_iterator")
def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """An iterator over a dataset that needs no initializer."""
    return dataset.make_one_shot_iterator()


@export("data.make_initializable_iterator")
def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """An iterator over a dataset whose `initializer` must be run first."""
    return dataset.make_initializable_iterator(shared_name)


@export("data.get_output_types")
def get_output_types(dataset_or_iterator: Described) -> Any:
    """The types of an element's components."""
    return structures.types_of(dataset_or_iterator._structure)


@export("data.get_output_shapes")
def get_output_shapes(dataset_or_iterator: Described) -> Any:
    """The shapes of an element's components."""
    return structures.shapes_of(dataset_or_iterator._structure)


@export("data.get_output_classes")
def get_output_classes(dataset_or_iterator: Described) -> Any:
    """The classes of an element's components."""
    return structures.classes_of(dataset_or_iterator._structure)
