"""Registries, stacks, locks, lazy modules, dispatch, marks of public names and looking through decorators."""

import functools
import sys
import threading

import pytest
from tensorfleet.python.framework import registry, traceable_stack
from tensorfleet.python.util import (
    dispatch,
    lazy_loader,
    lock_util,
    tf_decorator,
    tf_export,
    tf_inspect,
    tf_stack,
)


def test_a_registry_finds_what_was_registered_once():
    result = registry.Registry("things")
    result.register(test_a_registry_finds_what_was_registered_once)
    result.register(3, "three")
    assert result.lookup("three") == 3
    assert "three" in result.list()
    with pytest.raises(KeyError, match="Registering two things with name 'three'"):
        result.register(4, "three")
    with pytest.raises(LookupError, match="things registry has no entry for: four"):
        result.lookup("four")


def test_a_stack_knows_the_lines_that_pushed():
    stack = traceable_stack.TraceableStack()
    assert stack.push_obj("a") == traceable_stack.TraceableObject.SUCCESS
    stack.push_obj("b")
    first, second = reversed(stack.peek_traceable_objs())
    assert first.filename == __file__
    assert second.lineno == first.lineno + 1
    assert stack.peek_objs() == ["b", "a"]
    copy = stack.copy()
    assert stack.pop_obj() == "b"
    assert (stack.peek_top_obj(), len(stack), len(copy)) == ("a", 1, 2)
    far = traceable_stack.TraceableObject(None)
    assert far.set_filename_and_line_from_caller(offset=10000) == far.HEURISTIC_USED


def test_members_of_one_group_hold_a_lock_together():
    lock = lock_util.GroupLock(num_groups=2)
    entered = threading.Event()

    def other():
        with lock.group(1):
            entered.set()

    with lock.group(0), lock.group(0):
        thread = threading.Thread(target=other)
        thread.start()
        assert not entered.is_set()
    thread.join(10)
    assert entered.is_set()
    with pytest.raises(ValueError, match="group_id"):
        lock.acquire(2)


def test_a_lazy_module_is_imported_when_it_is_used():
    names = {}
    names["later"] = lazy_loader.LazyLoader("later", names, "json")
    assert names["later"].loads("[1]") == [1]
    assert names["later"] is sys.modules["json"]


def test_dispatchers_take_what_a_function_does_not():
    class Mine:
        pass

    @dispatch.add_dispatch_support
    def length(x, name=None):
        return len(x)

    @dispatch.dispatch_for_types(length, Mine)
    def length_of_mine(x, name=None):
        return -1

    assert length([1, 2]) == 2
    assert length(Mine()) == length(x=Mine()) == -1
    with pytest.raises(TypeError, match="has no len"):
        length(3)
    with pytest.raises(AssertionError, match="signature"):
        dispatch.dispatch_for_types(length, Mine)(lambda y: y)
    with pytest.raises(AssertionError, match="not enabled"):
        dispatch.OpDispatcher().register(len)


def test_public_names_are_noted_on_the_function_behind_decorators():
    def function():
        pass

    decorated = tf_decorator.make_decorator(function, lambda: None, "mine")
    assert tf_export.tf_export("a", "b", v1=["c"])(decorated) is decorated
    assert function._tf_api_names == ("a", "b")
    assert (tf_export.get_v1_names(decorated), tf_export.get_v2_names(function)) == (["c"], ["a", "b"])
    with pytest.raises(tf_export.SymbolAlreadyExposedError, match="already exposed"):
        tf_export.tf_export("d")(function)

    def other():
        pass

    tf_export.tf_export("d", overrides=[function])(other)
    assert not hasattr(function, "_tf_api_names")
    tf_export.tf_export("PI").export_constant(__name__, "pi")
    assert tf_export.get_v2_constants(sys.modules[__name__]) == [(("PI",), "pi")]
    for make, name in ((tf_export.tf_export, "estimator.x"), (tf_export.estimator_export, "x")):
        with pytest.raises(tf_export.InvalidSymbolNameError):
            make(name)


def test_functions_are_looked_at_through_decorators():
    def function(a, b=2, *rest, **more):
        """Doc."""

    class Kind:
        def __init__(self, x, y=1):
            pass

    decorated = tf_decorator.make_decorator(function, lambda *args, **kwargs: None, "mine")
    assert tf_inspect.getargspec(decorated) == (["a", "b"], "rest", "more", (2,))
    assert tf_inspect.getargspec(functools.partial(function, 1)) == (["b"], "rest", "more", (2,))
    assert tf_inspect.getargspec(functools.partial(lambda a, b: a, b=3)) == (["a", "b"], None, None, (3,))
    with pytest.raises(ValueError, match="do not have default value"):
        tf_inspect.getargspec(functools.partial(lambda a, b: a, a=3))
    assert tf_inspect.getargspec(Kind) == (["self", "x", "y"], None, None, (1,))
    assert tf_inspect.getcallargs(decorated, 1, c=3) == {"a": 1, "b": 2, "rest": (), "more": {"c": 3}}
    spec = tf_inspect.ArgSpec(["q"], None, None, (7,))
    with_told = tf_decorator.make_decorator(function, lambda q: q, "mine", "", spec)
    assert tf_inspect.getargspec(with_told) == spec
    assert tf_inspect.getcallargs(with_told) == {"q": 7}
    assert tf_inspect.isfunction(decorated)
    assert tf_inspect.getsource(decorated) == tf_inspect.getsource(function)


def test_another_function_is_put_behind_decorators():
    first, second = lambda: 1, lambda: 2
    decorated = tf_decorator.make_decorator(first, lambda: decorated._tf_decorator(), "mine")
    assert decorated() == 1
    assert tf_decorator.rewrap(decorated, first, second) is decorated
    assert decorated() == 2
    assert tf_decorator.rewrap(first, first, second) is second


def test_the_stack_ends_where_it_was_asked_for():
    assert tf_stack.extract_stack()[-1].name == "test_the_stack_ends_where_it_was_asked_for"
    assert len(tf_stack.extract_stack(limit=2)) == 2


def test_a_registry_says_where_a_name_was_registered_first():
    result = registry.Registry("things")
    result.register(3, "three")
    with pytest.raises(
        KeyError, match=r"\(Previous registration was in test_a_registry_says\w+ .*test_dispatch"
    ):
        result.register(4, "three")
