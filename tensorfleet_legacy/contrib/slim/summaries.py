"""`slim.summaries`: summaries named after their tensors, some of which are printed as well."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorfleet.base.naming import export, find
from tensorfleet.graph.scopes import GraphKeys

_PLACES = ("contrib.slim.summaries", "contrib.slim.python.slim.summaries")


def _public(function: Callable) -> Callable:
    return export(*(f"{place}.{function.__name__}" for place in _PLACES))(function)


def _name(tensor: Any, name: str | None, prefix: str | None, ending: str | None = None) -> str:
    return "/".join(filter(None, (prefix, name or tensor.op.name, ending)))


def _printed(kind: str, tensor: Any, name: str, print_summary: bool) -> Any:
    """A summary; one that prints its tensor takes its place among those of the graph."""
    if not print_summary:
        return find(f"summary.{kind}")(name, tensor)
    summary = find("Print")(find(f"summary.{kind}")(name, tensor, collections=[]), [tensor], name)
    find("add_to_collection")(GraphKeys.SUMMARIES, summary)
    return summary


@_public
def add_histogram_summary(tensor: Any, name: str | None = None, prefix: str | None = None) -> Any:
    """A histogram of a tensor."""
    return find("summary.histogram")(_name(tensor, name, prefix), tensor)


@_public
def add_image_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """Some pictures of a batch."""
    return _printed("image", tensor, _name(tensor, name, prefix), print_summary)


@_public
def add_scalar_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """A number; printed too, if wanted."""
    return _printed("scalar", tensor, _name(tensor, name, prefix), print_summary)


@_public
def add_zero_fraction_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """How many of a tensor's elements are zero, as a share."""
    called = _name(tensor, name, prefix, "Fraction_of_Zero_Values")
    return add_scalar_summary(find("nn.zero_fraction")(tensor), called, print_summary=print_summary)


@_public
def add_histogram_summaries(tensors: Iterable[Any], prefix: str | None = None) -> list:
    """Histograms of several tensors."""
    return [add_histogram_summary(tensor, prefix=prefix) for tensor in tensors]


@_public
def add_image_summaries(tensors: Iterable[Any], prefix: str | None = None) -> list:
    """Pictures of several batches."""
    return [add_image_summary(tensor, prefix=prefix) for tensor in tensors]


@_public
def add_scalar_summaries(
    tensors: Iterable[Any], prefix: str | None = None, print_summary: bool = False
) -> list:
    """Several numbers."""
    return [add_scalar_summary(tensor, prefix=prefix, print_summary=print_summary) for tensor in tensors]


@_public
def add_zero_fraction_summaries(tensors: Iterable[Any], prefix: str | None = None) -> list:
    """The shares of zeros in several tensors."""
    return [add_zero_fraction_summary(tensor, prefix=prefix) for tensor in tensors]
