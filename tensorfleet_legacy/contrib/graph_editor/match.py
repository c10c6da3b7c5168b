"""Whether an operation stands where one expects it: `tf.contrib.graph_editor.tests.match`."""

from __future__ import annotations

import functools
from typing import Any

from tensorfleet.graph.operation import Operation
from tensorfleet_legacy.contrib.graph_editor import select, util


def op_type(op_types: Any, op: Operation | None = None) -> Any:
    """Whether an operation is of one of these types; a test for it if none is given."""
    if op is None:
        return functools.partial(op_type, op_types)
    return op.type in ([op_types] if isinstance(op_types, str) else list(op_types))


def _matcher(value: Any) -> Any:
    return value if isinstance(value, OpMatcher) else OpMatcher(value)


class OpMatcher:
    """A test of an operation and of those around it: a regex for the name, a list of operations, or a function."""

    def __init__(self, positive_filter: Any) -> None:
        if select.can_be_regex(positive_filter):
            self._tests = [lambda op: select.make_regex(positive_filter).search(op.name) is not None]
        elif callable(positive_filter):
            self._tests = [positive_filter]
        else:
            self._tests = [lambda op: op in util.make_list_of_op(positive_filter)]

    def __call__(self, op: Any) -> bool:
        op = op.op if not isinstance(op, Operation) else op
        return all(test(op) for test in self._tests)

    def _also(self, wanted: Any, found: Any) -> OpMatcher:
        matchers = [_matcher(w) for w in wanted]

        def fits(op: Operation) -> bool:
            near = list(found(op))
            return len(near) == len(matchers) and all(m(o) for m, o in zip(matchers, near, strict=True))

        self._tests.append(fits)
        return self

    def input_ops(self, *args: Any) -> OpMatcher:
        """Matches the operations that give the inputs."""
        return self._also(args, lambda op: (t.op for t in op.inputs))

    def control_input_ops(self, *args: Any) -> OpMatcher:
        """Matches the control inputs."""
        return self._also(args, lambda op: op.control_inputs)

    def output_ops(self, *args: Any) -> OpMatcher:
        """Matches the consumers of each output, as one list per output."""
        wanted = [[_matcher(w) for w in (a if isinstance(a, (list, tuple)) else [a])] for a in args]

        def fits(op: Operation) -> bool:
            near = [t.consumers() for t in op.outputs]
            return len(near) == len(wanted) and all(
                len(ops) == len(ms) and all(m(o) for m, o in zip(ms, ops, strict=True))
                for ms, ops in zip(wanted, near, strict=True)
            )

        self._tests.append(fits)
        return self
