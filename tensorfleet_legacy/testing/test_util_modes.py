"""Names of `tensorflow.python.framework.test_util` that TensorFlow's own tests import, besides the test case.

Most of it says in which modes a test runs. There is one mode here, graphs of version 1: what asks for it runs as
it is, what asks for several runs once, and what asks only for version 2 or for a GPU that is absent is skipped.
"""

from __future__ import annotations

import functools
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from tensorfleet.base.platform.compat import forward_compatibility_horizon
from tensorfleet.graph.importing import import_graph_def
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import device as device_scope
from tensorfleet.ops.array.shape import reshape
from tensorfleet.ops.array.transpose import transpose
from tensorfleet.testing.cluster import free_ports
from tensorfleet_legacy.testing.combinations import combine
from tensorfleet_legacy.testing.names import gpu_device_name, is_gpu_available

_NOT_TESTS = {"test_session", "testSkipEager", "test_skip_eager"}


def as_it_is(first: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A decorator, given the test itself or first a reason, that changes nothing."""
    test = kwargs.get("func") or kwargs.get("f") or kwargs.get("fn") or kwargs.get("cls") or first
    if callable(test):
        return test
    return lambda decorated: decorated


def run_in_graph_and_eager_modes(
    func: Callable | None = None,
    config: Any = None,
    use_gpu: bool = True,
    reset_test: bool = True,
    assert_no_eager_garbage: bool = False,
) -> Callable:
    """Runs the test inside the test's session."""

    def decorate(test: Callable) -> Callable:
        if isinstance(test, type):
            raise ValueError(
                "`run_in_graph_and_eager_modes` only supports test methods. Did you mean to use "
                "`run_all_in_graph_and_eager_modes`?"
            )

        @functools.wraps(test)
        def decorated(self: Any, *args: Any, **kwargs: Any) -> None:
            with self.test_session(use_gpu=use_gpu, config=config):
                test(self, *args, **kwargs)

        return decorated

    return decorate if func is None else decorate(func)


def for_all_test_methods(decorator: Callable, *args: Any, **kwargs: Any) -> Callable:
    """Applies a decorator to every test method of a class."""

    def decorate(cls: type) -> type:
        for name in dir(cls):
            value = getattr(cls, name)
            if callable(value) and name.startswith("test") and name not in _NOT_TESTS:
                setattr(cls, name, decorator(*args, **kwargs)(value))
        return cls

    return decorate


def run_all_in_graph_and_eager_modes(cls: type) -> type:
    """Runs every test method of a class inside its session."""
    return for_all_test_methods(run_in_graph_and_eager_modes)(cls)


def with_forward_compatibility_horizons(*horizons: Any) -> Callable:
    """Runs the test once for each day up to which graphs are to be read; None is the usual one."""
    for horizon in horizons:
        if horizon is not None and (len(horizon) != 3 or not all(isinstance(part, int) for part in horizon)):
            raise ValueError(
                f"Bad forward compatibility horizon: {horizon!r}. Give a year, a month and a day."
            )

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def decorated(self: Any, *args: Any, **kwargs: Any) -> None:
            for horizon in horizons:
                with nullcontext() if horizon is None else forward_compatibility_horizon(*horizon):
                    test(self, *args, **kwargs)

        return decorated

    return decorate


def generate_combinations_with_testcase_name(**kwargs: Any) -> list[dict]:
    """All combinations of arguments, each with the name that a parameterized test gets from them."""
    result = []
    for combination in combine(**kwargs):
        pairs = (f"_{_letters(name)}_{_letters(value)}" for name, value in combination.items())
        result.append({**combination, "testcase_name": "_test" + "".join(pairs)})
    return result


def _letters(value: Any) -> str:
    return "".join(filter(str.isalnum, str(value)))


def py_func_if_in_function(f: Callable) -> Callable:
    """The function itself: what a test calls is never inside a function of a graph here."""
    return f


def run_v2_only(func: Any = None, reason: str | None = None) -> Any:
    """Skips the test: it is about TensorFlow 2."""
    skip = unittest.skip("Test is only compatible with v2")
    return skip(func) if callable(func) else skip


def run_gpu_only(func: Callable) -> Callable:
    """Skips the test when there is no GPU."""
    return skip_if(lambda: not is_gpu_available())(func)


run_cuda_only = run_gpu_only


def disable_with_predicate(pred: Callable[[], Any], skip_message: str) -> Callable:
    """Skips the test, with a message, when what a function gives at the time of the test is true."""
    return skip_if(pred, skip_message)


def skip_if(condition: Any, message: str = "The test's condition for being skipped holds.") -> Callable:
    """Skips the test when a condition, or what a function gives at the time of the test, is true."""

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def decorated(self: Any, *args: Any, **kwargs: Any) -> Any:
            if condition() if callable(condition) else condition:
                self.skipTest(message)
            return test(self, *args, **kwargs)

        return decorated

    return decorate


@contextmanager
def skip_if_error(test_obj: Any, error_type: type[Exception], messages: Any = None) -> Iterator[None]:
    """Skips the rest of a test when the block raises an error of a type, with one of some texts."""
    texts = [messages] if isinstance(messages, str) else messages
    try:
        yield
    except error_type as e:
        if texts and not any(text in str(e) for text in texts):
            raise
        test_obj.skipTest(f"Skipping error: {type(e)} {e}")


@contextmanager
def device(use_gpu: bool) -> Iterator[None]:
    """Places what is made on the GPU if there is one and it is wanted, else on the CPU."""
    with device_scope((gpu_device_name() if use_gpu else "") or "/device:CPU:0"):
        yield


@contextmanager
def use_gpu() -> Iterator[None]:
    """Places what is made on the GPU, if there is one."""
    with device(use_gpu=True):
        yield


@contextmanager
def force_gpu() -> Iterator[None]:
    """Places what is made on the first GPU."""
    with device_scope("/device:GPU:0"):
        yield


@contextmanager
def force_cpu() -> Iterator[None]:
    """Places what is made on the CPU."""
    with device_scope("/device:CPU:0"):
        yield


def no(*_: Any, **__: Any) -> bool:
    """Whether this build has CUDA, MKL, XLA's bridge and sanitizers."""
    return False


def assert_ops_in_graph(expected_ops: dict[str, str], graph: Any) -> dict[str, Any]:
    """The nodes of a graph that have the names and op types asked for; ValueError when one is not there."""
    nodes = {n.name: n for n in graph.as_graph_def().node if n.name in expected_ops}
    for name, node in nodes.items():
        if expected_ops[name] != node.op:
            raise ValueError(f"Expected op for node {name} is different. {expected_ops[name]} vs {node.op}")
    if nodes.keys() != expected_ops.keys():
        missing = sorted(expected_ops.keys() - nodes.keys())
        raise ValueError(f"Not all expected ops are present: {missing} of {sorted(expected_ops)}")
    return nodes


def assert_meta_graph_protos_equal(tester: Any, a: Any, b: Any) -> None:
    """Two MetaGraphDefs are equal, in whatever order the graph's nodes are listed."""
    from tensorfleet_legacy.testing.test_util import assert_equal_graph_def

    assert_equal_graph_def(a.graph_def, b.graph_def)
    rest = [type(m).FromString(m.SerializeToString()) for m in (a, b)]
    for message in rest:
        message.ClearField("graph_def")
    tester.assertProtoEquals(*rest)


def get_node_def_from_graph(node_name: str, graph_def: Any) -> Any:
    """The node of a GraphDef that has a name; None when there is none."""
    return next((node for node in graph_def.node if node.name == node_name), None)


def _permuted(tensor_or_shape: Any, orders: dict[int, list[int]]) -> Any:
    if isinstance(tensor_or_shape, (list, tuple)):
        return [tensor_or_shape[i] for i in orders[len(tensor_or_shape)]]
    return transpose(tensor_or_shape, orders[tensor_or_shape.shape.ndims])


def NHWCToNCHW(input_tensor: Any) -> Any:
    """A tensor or a shape with its channels moved from the end to behind the batch."""
    return _permuted(input_tensor, {4: [0, 3, 1, 2], 5: [0, 4, 1, 2, 3]})


def NCHWToNHWC(input_tensor: Any) -> Any:
    """A tensor or a shape with its channels moved from behind the batch to the end."""
    return _permuted(input_tensor, {4: [0, 2, 3, 1], 5: [0, 2, 3, 4, 1]})


def NHWCToNCHW_VECT_C(input_shape_or_tensor: Any) -> Any:
    """A tensor or a shape whose channels are behind the batch by four, the four at the end."""
    dims = _dims_of(input_shape_or_tensor)
    if dims[-1] % 4:
        raise ValueError("Last dimension of input must be evenly divisible by 4 to convert to NCHW_VECT_C.")
    dims = [*dims[:-1], dims[-1] // 4, 4]
    whole = reshape(input_shape_or_tensor, dims) if isinstance(input_shape_or_tensor, Tensor) else dims
    return _permuted(whole, {5: [0, 3, 1, 2, 4], 6: [0, 4, 1, 2, 3, 5]})


def NCHW_VECT_CToNHWC(input_shape_or_tensor: Any) -> Any:
    """Undoes `NHWCToNCHW_VECT_C`."""
    if _dims_of(input_shape_or_tensor)[-1] != 4:
        raise ValueError("Last dimension of NCHW_VECT_C must be 4.")
    moved = _permuted(input_shape_or_tensor, {5: [0, 2, 3, 1, 4], 6: [0, 2, 3, 4, 1, 5]})
    *rest, channels, four = _dims_of(moved)
    dims = [*rest, channels * four]
    return reshape(moved, dims) if isinstance(moved, Tensor) else dims


def _dims_of(tensor_or_shape: Any) -> list:
    return (
        list(tensor_or_shape)
        if isinstance(tensor_or_shape, (list, tuple))
        else tensor_or_shape.shape.as_list()
    )


def pick_unused_port() -> int:
    """A port that is free now."""
    return free_ports(1)[0]


def set_producer_version(graph: Any, producer_version: int) -> None:
    """Makes a graph one to which an older TensorFlow has contributed."""
    from tensorfleet.base.protos import GraphDef, VersionDef

    with graph.as_default():
        import_graph_def(GraphDef(versions=VersionDef(producer=producer_version)))
