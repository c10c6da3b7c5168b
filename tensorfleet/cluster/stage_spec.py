"""A stage as a session tells a task of it: in names of operations and tensors, without a graph."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Route:
    """Values that a stage sends to another task."""

    task: str
    address: str
    names: list[str]


#: for each predicate the value it must have
GuardSpec = list[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class BranchSpec:
    """Under which conditions the operations of a stage run, by their names."""

    guards: dict[str, GuardSpec]
    merges: dict[str, list[GuardSpec]]


@dataclass(frozen=True, slots=True)
class StageSpec:
    """A stage in terms of names: the operations, where its feeds come from and where its results go."""

    id: int
    ops: list[str]
    targets: list[str]
    #: its feeds: sent with RUN, kept from an earlier stage of the step, pushed by other tasks
    given: list[str]
    kept: list[str]
    awaited: list[str]
    #: its results: into the answer, kept for a later stage, pushed to other tasks
    reply: list[str]
    keep: list[str]
    push: list[Route]
    #: the constants among those of `Register` that it uses
    known: list[str]
    #: the element type in which floats are sent, or nothing; what is sent so
    wire: str
    thin: list[str]
    #: whether it only reads variables
    plain: bool = False
    #: of those given, what a loop sends but once
    fixed: list[int] = dataclasses.field(default_factory=list)
    #: handles for the loops of the step: kept here; used here, by the name inside and outside of the loop
    hold: list[str] = dataclasses.field(default_factory=list)
    held: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    branches: BranchSpec | None = None
    #: in a loop: the inputs (operation, number) that share the memory of a variable
    live: list[tuple[str, int, str]] | None = None
