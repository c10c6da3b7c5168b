"""`tf.train.Scaffold`: the operations that every training needs, found in the graph or added to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorfleet.api.summary.summary import merge_all
from tensorfleet.api.train.saver import Saver
from tensorfleet.api.variables.lists import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
)
from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.graph.apply import apply, constant
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import (
    GraphKeys,
    add_to_collection,
    device,
    get_collection,
    get_default_graph,
    name_scope,
)
from tensorfleet.ops.array.basic import group
from tensorfleet.ops.state.lookup import tables_initializer

if TYPE_CHECKING:
    from tensorfleet.api.train.types import FeedDict, Fetches
    from tensorfleet.session.session import BaseSession


@export("train.Scaffold", "python.training.monitored_session.Scaffold")
class Scaffold:
    """The operations that start, check, summarize and save a model. Arguments that you leave out have defaults.

    `finalize()` fills in the defaults, from the graph's collections (such as `GraphKeys.INIT_OP`)
    or with new operations, and finalizes the graph; monitored sessions call it. `init_fn` is called as
    `init_fn(scaffold, session)` after `init_op`, when there is no checkpoint to restore.
    """

    def __init__(
        self,
        init_op: Fetches = None,
        init_feed_dict: FeedDict | None = None,
        init_fn: Callable[[Scaffold, BaseSession], Any] | None = None,
        ready_op: Fetches = None,
        ready_for_local_init_op: Fetches = None,
        local_init_op: Fetches = None,
        summary_op: Tensor | None = None,
        saver: Saver | None = None,
        copy_from_scaffold: Scaffold | None = None,
    ) -> None:
        if copy_from_scaffold is not None and not isinstance(copy_from_scaffold, Scaffold):
            raise TypeError("copy_from_scaffold is not a Scaffold instance.")

        def given(value: Any, name: str) -> Any:
            return getattr(copy_from_scaffold, name) if value is None and copy_from_scaffold else value

        self._init_op = given(init_op, "init_op")
        self._init_feed_dict: FeedDict | None = given(init_feed_dict, "init_feed_dict")
        self._user_init_fn = given(init_fn, "_user_init_fn")
        self._ready_op = given(ready_op, "ready_op")
        self._ready_for_local_init_op = given(ready_for_local_init_op, "ready_for_local_init_op")
        self._local_init_op = given(local_init_op, "local_init_op")
        self._summary_op: Tensor | None = given(summary_op, "summary_op")
        self._saver: Any = given(saver, "saver")
        user = self._user_init_fn
        self._init_fn = (lambda sess: user(self, sess)) if user else None

    def finalize(self) -> Scaffold:
        """Fills in the defaults and finalizes the graph."""
        self._init_op = self._or_found("init_op", GraphKeys.INIT_OP, _init_op)
        self._ready_op = self._or_found("ready_op", GraphKeys.READY_OP, _ready_op)
        self._ready_for_local_init_op = self._or_found(
            "ready_for_local_init_op", GraphKeys.READY_FOR_LOCAL_INIT_OP, _ready_for_local_init_op
        )
        self._local_init_op = self._or_found(
            "local_init_op", GraphKeys.LOCAL_INIT_OP, Scaffold.default_local_init_op
        )
        self._summary_op = self._or_found("summary_op", GraphKeys.SUMMARY_OP, merge_all)
        if self._saver is None:
            self._saver = default_saver()
        self._saver.build()
        get_default_graph().finalize()
        logging.info("Graph was finalized.")
        return self

    def _or_found(self, name: str, key: str, make: Callable[[], Any]) -> Any:
        value = getattr(self, f"_{name}")
        return Scaffold.get_or_default(name, key, make) if value is None else value

    init_fn: Callable[[BaseSession], Any] | None = readonly(
        "_init_fn", "A function of the session, called after `init_op`."
    )
    init_op: Fetches = readonly("_init_op", "Initializes the global variables.")
    ready_op: Fetches = readonly("_ready_op", "Gives the names of variables without a value.")
    ready_for_local_init_op: Fetches = readonly(
        "_ready_for_local_init_op", "Gives the names of global variables without a value."
    )
    local_init_op: Fetches = readonly(
        "_local_init_op", "Initializes the state of one task: local variables and tables."
    )
    summary_op: Tensor | None = readonly("_summary_op", "All summaries as one tensor.")
    saver: Any = readonly("_saver", "Writes and reads checkpoints.")
    init_feed_dict: FeedDict | None = readonly("_init_feed_dict", "Values to feed to `init_op`.")

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Callable[[], Any]) -> Any:
        """The one item of a collection; made by `default_constructor()` when there is none."""
        items = get_collection(collection_key)
        if len(items) > 1:
            raise RuntimeError(
                f'More than one item in the collection "{collection_key}". Please indicate which one to use by '
                f"passing it to the tf.Scaffold constructor as:  tf.Scaffold({arg_name}=item to use)"
            )
        if items:
            return items[0]
        item = default_constructor()
        if item is not None:
            add_to_collection(collection_key, item)
        return item

    @staticmethod
    def default_local_init_op() -> Operation:
        """An operation that initializes local variables and tables."""
        return group(local_variables_initializer(), tables_initializer(), _no_other_resources())


def _no_other_resources() -> Operation:
    """TensorFlow's graph has a part here for resources of its own; it is empty."""
    return group(name="init")


def _init_op() -> Operation:
    return group(global_variables_initializer(), _no_other_resources())


def _ready_op() -> Tensor:
    return _with_resources(report_uninitialized_variables())


def _ready_for_local_init_op() -> Tensor:
    return _with_resources(report_uninitialized_variables(global_variables()))


def _with_resources(names: Tensor) -> Tensor:
    with name_scope("report_uninitialized_resources"), device("/cpu:0"):
        others = constant([], dtypes.string)
    return apply("ConcatV2", [names, others], 0, name="concat")


def default_saver() -> Saver:
    """The one Saver of the graph; made when there is none."""
    savers: list[Saver] = get_collection(GraphKeys.SAVERS)
    if len(savers) > 1:
        raise RuntimeError(
            f"More than one item in collection {GraphKeys.SAVERS}. Please indicate which one to use by passing it "
            "to the constructor."
        )
    if savers:
        return savers[0]
    saver = Saver(sharded=True, allow_empty=True)
    add_to_collection(GraphKeys.SAVERS, saver)
    return saver
