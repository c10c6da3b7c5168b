"""The grammar of Python 2, rewritten for Python 3 without moving a line."""

import contextlib
import io
import sys

import pytest

from tensorfleet_legacy.compat.python2 import parse, to_python_3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("print", "print()"),
        ("print 'a', x", "print('a', x)"),
        ("print 'a',", "print('a', end=\" \")"),
        ("print('a', 1)", "print('a', 1)"),
        ("print ('a'), 1", "print(('a'), 1)"),
        ("print ('%d') % 1", "print(('%d') % 1)"),
        ("print >>log, 'a', 1", "print(file=log, *('a', 1,))"),
        ("print >>log, 'a',", "print(file=log, end=\" \", *('a',))"),
        ("print >>log", "print(file=log)"),
        ("if x: print 'a'; print 'b'", "if x: print('a'); print('b')"),
        ("f = lambda: 1; print f", "f = lambda: 1; print(f)"),
        ("exec code", "exec(code)"),
        ("exec code in names", "exec(code , names)"),
        ("raise E, 'm'", "raise E( 'm')"),
        ("raise E, 'm', trace", "raise E( 'm').with_traceback( trace)"),
        ("x = 10L + 0xFFL + 0777 + 07L", "x = 10 + 0xFF + 0o777 + 0o7"),
        ("x = 1 <> 2", "x = 1 != 2"),
        ("x = `y`", "x = repr(y)"),
        ("x = ur'a'", "x = r'a'"),
        (
            "sorted(d, key=lambda (k, v): v)",
            "sorted(d, key=lambda parts_7: [( v) for ( k , v ), in [(parts_7,)]][0])",
        ),
        ("def f(a, (b, c)=(1, 2)): pass", "def f(a, parts_5: (b, c)=(1, 2)): pass"),
        ("x = 'print 1'  # print 2", "x = 'print 1'  # print 2"),
    ],
)
def test_statements(old, new):
    assert to_python_3(old) == new
    compile(new, "new.py", "exec")


def test_exceptions_are_named_with_as():
    source = "try:\n    f()\nexcept (A, B), e:\n    pass\nexcept C,e: pass\n"
    assert to_python_3(source) == "try:\n    f()\nexcept (A, B) as  e:\n    pass\nexcept C as e: pass\n"


def test_tabs_reach_to_columns_of_eight():
    source = "if 1:\n\tprint 'a'\n        print 'b'\ns = '''\n\tkept'''\n"
    assert to_python_3(source) == "if 1:\n        print('a')\n        print('b')\ns = '''\n\tkept'''\n"


def test_a_statement_over_several_lines_keeps_them():
    source = 'print >>log, \\\n  "a %d" % (\n  1)\nprint "b" \\\n  "c"\n'
    assert to_python_3(source).count("\n") == source.count("\n")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(to_python_3(source), {"log": sys.stdout})
    assert said.getvalue() == "a 1\nbc\n"


def test_the_function_stays_where_the_script_asks_for_it():
    source = "from __future__ import division, print_function\nprint\nx = 0777\n"
    assert to_python_3(source) == source.replace("0777", "0o777")


def test_what_neither_python_can_parse_is_python_3s_error():
    with pytest.raises(SyntaxError, match="never closed") as caught:
        parse("x = 1\ny = (1,\n", "train.py")
    assert (caught.value.filename, caught.value.lineno) == ("train.py", 2)


def test_async_is_a_name_again_and_the_program_stays_one_in_python_3():
    source = "class Flags: pass\nflags = Flags()\nflags.async = 7\nasync = flags.async / 2\n"
    tree, is_old = parse(source, "train.py")
    names: dict = {}
    exec(compile(tree, "train.py", "exec"), names)
    assert not is_old and (names["async"], vars(names["flags"])) == (3.5, {"async": 7})
    assert parse("async def f():\n    async with g() as x: pass\n", "train.py")[1] is False
