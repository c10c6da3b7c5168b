"""Marks on what is going to be removed."""

import functools

import pytest
from tensorfleet.python.platform import tf_logging
from tensorfleet.python.util import decorator_utils, deprecation, tf_inspect

DATE, ADVICE = "2030-07-04", "Use new()."


@pytest.fixture
def logged(monkeypatch):
    calls = []
    monkeypatch.setattr(tf_logging, "warning", lambda *args: calls.append(args))
    return calls


def test_a_deprecated_function_says_so_in_its_docstring_and_once_in_the_log(logged):
    @deprecation.deprecated(DATE, ADVICE)
    def old(a, b):
        """Adds.

        Args:
          a: A number.
        """
        return a + b

    assert old.__doc__ == (
        "Adds. (deprecated)\n\nWarning: THIS FUNCTION IS DEPRECATED. It will be removed after 2030-07-04.\n"
        "Instructions for updating:\nUse new().\n\nArgs:\n  a: A number."
    )
    assert old(1, 2) == old(1, 2) == 3
    ((text, place, *rest),) = logged
    assert "deprecated and will be removed" in text
    assert "test_deprecation.py:" in place
    assert {f"after {DATE}", ADVICE} <= set(rest)


def test_every_call_is_logged_when_asked_for_except_inside_of_silence(logged):
    @deprecation.deprecated(None, ADVICE, warn_once=False)
    def old():
        pass

    old()
    with deprecation.silence():
        old()
    old()
    assert len(logged) == 2
    assert old.__doc__.startswith("DEPRECATED FUNCTION\n\nWarning: ")
    assert "in a future version" in logged[0]


def test_a_class_can_be_deprecated(logged):
    @deprecation.deprecated(DATE, ADVICE)
    class Old:
        def __init__(self, a):
            self.a = a

    assert Old(3).a == 3
    assert len(logged) == 1


def test_arguments_are_deprecated_when_they_are_given(logged):
    @deprecation.deprecated_args(DATE, ADVICE, ("d1", None), "d2", "rest")
    def function(a, d1=None, d2=1, *rest):
        """Doc."""
        return a

    function(1)
    function(1, None)
    assert not logged
    function(1, 2, 3)
    function(1, 2, d2=3)
    assert [call[4] for call in logged] == ["d1", "d2"]
    assert "SOME ARGUMENTS ARE DEPRECATED: `(d1, d2, rest)`. They will be removed" in function.__doc__
    function(1, None, 2, 3)
    assert logged[-1][4] == "rest"


def test_values_are_deprecated_by_default_too(logged):
    @deprecation.deprecated_arg_values(DATE, ADVICE, warn_once=False, a=True)
    def function(a=True):
        return a

    assert function(False) is False
    assert not logged
    assert function() is function(a=True) is True
    assert len(logged) == 2
    assert function.__doc__.startswith("DEPRECATED FUNCTION ARGUMENT VALUES\n")


def test_marks_that_say_too_little_are_refused():
    with pytest.raises(ValueError, match="YYYY-MM-DD"):
        deprecation.deprecated("07-04-2030", ADVICE)
    with pytest.raises(ValueError, match="instructions"):
        deprecation.deprecated_args(DATE, "", "a")
    with pytest.raises(ValueError, match="argument"):
        deprecation.deprecated_args(DATE, ADVICE)
    with pytest.raises(ValueError, match="argument"):
        deprecation.deprecated_arg_values(DATE, ADVICE)
    with pytest.raises(ValueError, match=r"not present.*\['b'\]"):
        deprecation.deprecated_args(DATE, ADVICE, "b")(lambda a: a)
    with pytest.raises(ValueError, match="make sure @property appears before @deprecated"):
        deprecation.deprecated(DATE, ADVICE)(property(lambda self: 1))


def test_an_alias_of_a_function_or_class_is_logged_once(logged):
    class Real:
        def __init__(self, a):
            self.a = a

    old = deprecation.deprecated_alias("old.sum", "real.sum", lambda a, b: a + b)
    other = deprecation.deprecated_alias("old.Real", "real.Real", Real)
    assert old(1, 2) == old(1, 2) == 3
    assert isinstance(other(4), Real)
    assert other(4).a == 4
    assert [call[2:] for call in logged] == [("old.sum", "real.sum"), ("old.Real", "real.Real")]
    assert tf_inspect.getfullargspec(other.__init__) == tf_inspect.getfullargspec(Real.__init__)


def test_names_are_marked_once():
    def function():
        pass

    assert deprecation.deprecated_endpoints("a", "b")(function) is function
    assert function._tf_deprecated_api_names == ("a", "b")
    with pytest.raises(deprecation.DeprecatedNamesAlreadySet, match="already set"):
        deprecation.deprecated_endpoints("c")(function)


def test_a_notice_stands_behind_the_first_line_of_a_docstring():
    def noticed(doc):
        return decorator_utils.add_notice_to_docstring(doc, "Do.", "None.", "(old)", ["Away", "Now:"])

    whole = "Brief (old)\n\nWarning: Away\nNow:\nDo.\n\nMore.\n\nArgs:\n  a: x"
    assert noticed("Brief\n\n  More.\n\n  Args:\n    a: x") == whole
    assert noticed("\n  Brief\n  \n  More.\n  \n  Args:\n    a: x") == whole
    assert noticed("Brief\n  ") == "Brief (old)\n\nWarning: Away\nNow:\nDo."
    assert noticed(None) == "None.\n\nWarning: Away\nNow:\nDo."


def test_what_cannot_be_called_cannot_be_decorated():
    decorator_utils.validate_callable(functools.partial(print), "mine")
    with pytest.raises(ValueError, match="is not a function"):
        decorator_utils.validate_callable(0, "mine")
    assert decorator_utils.get_qualified_name(DATE.upper) == "str.upper"
