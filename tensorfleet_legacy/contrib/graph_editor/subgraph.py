"""A part of a graph seen as a box with inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet_legacy.contrib.graph_editor import select, util


def _places(wanted: Any, ts: list[Tensor], repetition: bool) -> list[int]:
    """Positions, which may be told by the tensors at them."""
    result = [ts.index(w) if isinstance(w, Tensor) else int(w) for w in wanted]
    for place in result:
        if not 0 <= place < len(ts):
            raise ValueError(f"Indices must be between 0 and {len(ts) - 1}, got: {place}")
    if not repetition and len(set(result)) != len(result):
        raise ValueError("Repetition is not allowed. Name each input once.")
    return result


class SubGraphView:
    """Some operations, with the tensors that enter and leave them in an order that can be changed.

    `passthrough_ts` are tensors that are an input and an output at once. A view never changes: `remap_inputs` and
    the like give another.
    """

    def __init__(self, inside_ops: Any = (), passthrough_ts: Any = ()) -> None:
        self._ops = list(dict.fromkeys(util.make_list_of_op(inside_ops)))
        passing = util.make_list_of_t(passthrough_ts)
        self._graph = util.get_unique_graph([*self._ops, *passing], none_if_empty=True)
        inputs, outputs, inside = select.compute_boundary_ts(self._ops)
        known = {*inputs, *outputs, *inside}
        self._passthrough_ts = [t for t in dict.fromkeys(passing) if t not in known]
        self._input_ts = [*inputs, *self._passthrough_ts]
        self._output_ts = [*outputs, *self._passthrough_ts]

    def __copy__(self) -> SubGraphView:
        result = SubGraphView()
        result.__dict__.update({k: list(v) if isinstance(v, list) else v for k, v in self.__dict__.items()})
        return result

    def copy(self) -> SubGraphView:
        """Another view of the same."""
        return self.__copy__()

    def _with(self, **parts: Any) -> SubGraphView:
        result = self.copy()
        result.__dict__.update(parts)
        return result

    def remap_default(self, remove_input_map: bool = True, remove_output_map: bool = True) -> SubGraphView:
        """The inputs and outputs as they were first."""
        plain = SubGraphView(self._ops, self._passthrough_ts)
        return self._with(
            _input_ts=plain._input_ts if remove_input_map else self._input_ts,
            _output_ts=plain._output_ts if remove_output_map else self._output_ts,
        )

    def remap_outputs_make_unique(self) -> SubGraphView:
        """Each output once."""
        return self._with(_output_ts=list(dict.fromkeys(self._output_ts)))

    def remap_outputs_to_consumers(self) -> SubGraphView:
        """Each output as often as it is used."""
        return self._with(_output_ts=[t for t in self._output_ts for _ in t.consumers()])

    def remove_unused_ops(self, control_inputs: bool = True) -> SubGraphView:
        """Without the operations that neither depend on an input nor are needed for an output."""
        used = set(
            select.get_walks_union_ops(
                self.connected_inputs,
                self.connected_outputs,
                within_ops=self._ops,
                control_inputs=control_inputs,
            )
        )
        return self._with(_ops=[op for op in self._ops if op in used])

    def remap_inputs(self, new_input_indices: Any) -> SubGraphView:
        """Some of the inputs, in another order: by position, or the tensors themselves."""
        places = _places(new_input_indices, self._input_ts, repetition=False)
        return self._with(_input_ts=[self._input_ts[i] for i in places])

    def remap_outputs(self, new_output_indices: Any) -> SubGraphView:
        """Some of the outputs, in another order, also several times."""
        places = _places(new_output_indices, self._output_ts, repetition=True)
        return self._with(_output_ts=[self._output_ts[i] for i in places])

    def remap(self, new_input_indices: Any = None, new_output_indices: Any = None) -> SubGraphView:
        """Both."""
        result = self if new_input_indices is None else self.remap_inputs(new_input_indices)
        return result.copy() if new_output_indices is None else result.remap_outputs(new_output_indices)

    def find_op_by_name(self, op_name: str) -> Operation:
        """The operation of that name."""
        for op in self._ops:
            if op.name == op_name:
                return op
        raise AttributeError(f"{op_name} not found in subgraph.")

    def __str__(self) -> str:
        def lines(title: str, elements: Iterable) -> list[str]:
            items = [e.name for e in elements]
            return [f"** {title}[{len(items)}]:", *(f"  {name}" for name in items)]

        if self._graph is None:
            return "SubGraphView: empty"
        lines_of_text = [f"SubGraphView (graphid={id(self._graph)}):"]
        lines_of_text += (
            lines("ops", self._ops) + lines("inputs", self._input_ts) + lines("outputs", self._output_ts)
        )
        return "\n".join(lines_of_text)

    @property
    def graph(self) -> Graph | None:
        """The graph; None for a view of nothing."""
        return self._graph

    @property
    def ops(self) -> util.ListView:
        """The operations inside."""
        return util.ListView(self._ops)

    @property
    def inputs(self) -> util.ListView:
        """The tensors that enter."""
        return util.ListView(self._input_ts)

    @property
    def connected_inputs(self) -> util.ListView:
        """The inputs that an operation inside takes."""
        return util.ListView([t for t in self._input_ts if not self.is_passthrough(t)])

    @property
    def outputs(self) -> util.ListView:
        """The tensors that leave."""
        return util.ListView(self._output_ts)

    @property
    def connected_outputs(self) -> util.ListView:
        """The outputs that an operation inside gives."""
        return util.ListView([t for t in self._output_ts if not self.is_passthrough(t)])

    @property
    def passthroughs(self) -> util.ListView:
        """The tensors that are an input and an output."""
        return util.ListView(self._passthrough_ts)

    def __bool__(self) -> bool:
        return self._graph is not None

    def op(self, op_id: int) -> Operation:
        """The operation at a position."""
        return self._ops[op_id]

    def is_passthrough(self, t: Tensor) -> bool:
        """Whether a tensor is an input and an output."""
        return t in self._passthrough_ts

    def __enter__(self) -> SubGraphView:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def input_index(self, t: Tensor) -> int:
        """The position of an input."""
        return self._index(t, self._input_ts, "inputs")

    def output_index(self, t: Tensor) -> int:
        """The position of an output."""
        return self._index(t, self._output_ts, "outputs")

    def _index(self, t: Tensor, ts: list[Tensor], what: str) -> int:
        if t not in ts:
            raise ValueError(f"Can't find {t.name} in {what} of subgraph {self}.")
        return ts.index(t)

    def consumers(self) -> list[Operation]:
        """The operations outside that take an output."""
        inside = set(self._ops)
        return list(dict.fromkeys(op for t in self._output_ts for op in t.consumers() if op not in inside))


def make_view(*args: Any, **kwargs: Any) -> SubGraphView:
    """A view of operations, and tensors that pass through: themselves, or regexes with `graph=`."""
    if len(args) == 1 and isinstance(args[0], SubGraphView):
        return args[0].copy()
    ops, ts = select.select_ops_and_ts(*args, **kwargs)
    return SubGraphView(ops, ts)


def make_view_from_scope(scope: str, graph: Graph) -> SubGraphView:
    """A view of all that is in a name scope."""
    return SubGraphView(select.get_name_scope_ops(graph, scope))
