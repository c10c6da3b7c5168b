"""What scripts of Python 2's days find: names, modules, methods, and their meaning of `/`."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet_legacy.compat.python2_scripts import compile_script, names_for
from tests.support import launching

OLD = "print 1\n"  # makes a program one in Python 2


def names_after(source):
    code, is_old = compile_script(source, "train.py")
    names = names_for(source, is_old)
    exec(code, names)
    return names


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7 / 2", 3),
        ("-7 / 2", -4),
        ("7 / 2.0", 3.5),
        ("range(2) + range(1)", [0, 1, 0]),
        ("map(str, (1, 2))", ["1", "2"]),
        ("zip((1, 2), (3, 4))[1]", (2, 4)),
        ("filter(None, (0, 1))", [1]),
        ("{'a': 1}.keys()[0]", "a"),
        ("{'a': 1}.values() + {'b': 2}.items()", [1, ("b", 2)]),
        ("iter([5]).next()", 5),
        ("(lambda (b, (c, d)): b + float(c) / d)((1, (2, 4)))", 1.5),
        ("reduce(lambda total, (k, v): total + k * v, [(1, 2), (3, 4)], 0)", 14),
        ("(lambda (a, b), (c, d): map(lambda (x, y): x * y + a, [(b, c)]))((1, 2), (3, 4))", [7]),
        ("[lambda (a, b): a + b + i for i in (5,)][0]((1, 2))", 8),
        ("'text'.decode('utf-8')", "text"),
        ("b'text'.decode('utf-8')", "text"),
    ],
)
def test_a_program_in_python_2_means_what_it_did(expression, value):
    assert names_after(f"{OLD}x = {expression}\n")["x"] == value


def test_parameters_in_brackets_are_taken_apart():
    source = OLD + "def f(a, (b, (c, d))=(2, (3, 4)), e=5):\n    'about f'\n    return a, b, c / d, e\n"
    f = names_after(source)["f"]
    assert f(1) == (1, 2, 0, 5) and f(1, (6, (9, 2)), 3) == (1, 6, 4, 3)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("b'a|1'.split('|')", ["a", "1"]),
        ("b'a=1'.partition('=')", ("a", "=", "1")),
        ("b'line\\n'.strip('\\n')", "line"),
        ("b'a-b'.replace('-', '+')", "a+b"),
        ("b'worker'.startswith('work') and b'worker'.find('k')", 3),
        ("b'a b'.split(b' ')", [b"a", b"b"]),
        ("'a b'.split(' ')", ["a", "b"]),
        ("[4, 5].index(5)", 1),
    ],
)
@pytest.mark.parametrize("version", ["", OLD])
def test_bytes_that_are_searched_for_text_are_text(expression, value, version):
    assert names_after(f"{version}x = {expression}\n")["x"] == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("list({'a': 1}.viewitems())", [("a", 1)]),
        ("'text'.decode('utf-8')", "text"),
        ("b'text'.decode('utf-8')", "text"),
        ("list(io.StringIO('a\\nb').xreadlines())", ["a\n", "b"]),
        ("[e.tag for e in ElementTree.XML('<a><b/></a>').getchildren()]", ["b"]),
        ("sorted([1, 3, 2], cmp=lambda a, b: b - a)", [3, 2, 1]),
        ("sorted([1, 3, 2], lambda a, b: cmp(a, b), reverse=True)", [3, 2, 1]),
        ("sorted([1, 3, 2], lambda a, b: a - b, lambda e: -e)", [3, 2, 1]),
    ],
)
@pytest.mark.parametrize("version", ["", OLD])
def test_methods_of_then_do_what_they_did(expression, value, version):
    imports = "import io\nfrom xml.etree import ElementTree\n"
    assert names_after(f"{version}{imports}x = {expression}\n")["x"] == value


@pytest.mark.parametrize("call", ["x.sort(cmp=lambda a, b: b - a)", "x.sort(lambda a, b: b - a)"])
def test_a_list_is_sorted_by_a_function_of_two(call):
    assert names_after(f"x = [1, 3, 2]\n{call}\n")["x"] == [3, 2, 1]


@pytest.mark.parametrize("mode", ["U", "rU", "rbU"])
def test_files_are_opened_with_any_line_ends(tmp_path, mode):
    (tmp_path / "lines").write_bytes(b"a\nb")
    source = f"with open({str(tmp_path / 'lines')!r}, {mode!r}) as lines:\n    x = lines.read()\n"
    assert names_after(source)["x"] == (b"a\nb" if "b" in mode else "a\nb")


def test_bytes_that_are_given_something_else_raise_as_in_python_3():
    with pytest.raises(TypeError, match="bytes-like"):
        names_after("b'1'.strip(1)\n")


def test_arrays_and_tensors_divide_by_their_type():
    half = names_after(OLD + "def half(x): return x / 2\n")["half"]
    np.testing.assert_array_equal(half(np.array([3, 5])), [1, 2])
    np.testing.assert_array_equal(half(np.array([3.0])), [1.5])
    assert half(tf.constant(3)).op.type == "FloorDiv"
    assert half(tf.constant(3.0)).op.type == "RealDiv"


def test_a_division_in_place_stays_in_the_array():
    pixels = np.array([255.0])
    scale = names_after(OLD + "def scale(x):\n    x /= 255\n    return x\n")["scale"]
    assert scale(pixels) is pixels and pixels[0] == 1
    assert scale(510) == 2


def test_division_from_the_future_is_python_3s():
    assert names_after(f"from __future__ import division\n{OLD}x = 7 / 2\n")["x"] == 3.5


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7 / 2", 3.5),
        ("list(xrange(3))", [0, 1, 2]),
        ("isinstance(u'a', unicode)", True),
        ("reduce(lambda a, b: a + b, [1, 2])", 3),
        ("sorted({'a': 1}.iteritems())", [("a", 1)]),
        ("{'a': 1}.has_key('a')", True),
        ("sum({'a': 1}.itervalues())", 1),
        ("iter([5]).next()", 5),
    ],
)
def test_a_program_in_python_3_finds_the_names_besides(expression, value):
    assert names_after(f"x = {expression}\n")["x"] == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("len(map(int, '123'))", 3),
        ("zip('ab', 'cd')[1]", ("b", "d")),
        ("filter(None, [0, 1, 2])[1:]", [2]),
        ("map(int, '12') + [3]", [1, 2, 3]),
        ("{'a': 1}.keys()[0]", "a"),
        ("{'a': 1}.items()[-1]", ("a", 1)),
        ("{'a': 1}.items() + {'b': 2}.items()", [("a", 1), ("b", 2)]),
        ("[0] + dict(a=1).values()", [0, 1]),
        ("next(map(int, '12'))", 1),
        ("dict(zip('ab', 'cd'))", {"a": "c", "b": "d"}),
        ("list(zip('ab', 'cd', strict=True))", [("a", "c"), ("b", "d")]),
        ("__import__('numpy').array(map(int, '12')).tolist()", [1, 2]),
        ("next(iter(zip(__import__('itertools').count(), 'ab')))", (0, "a")),
    ],
)
def test_what_gave_lists_once_is_one_when_used_like_one(expression, value):
    assert names_after(f"x = {expression}\n")["x"] == value


def test_an_endless_iterator_is_not_looked_at_before_its_elements_are_asked_for():
    source = "import itertools\nnumbers = map(str, itertools.count())\nx = bool(numbers), next(numbers), next(numbers)\n"
    assert names_after(source)["x"] == (True, "0", "1")


def test_a_module_named_after_a_package_that_is_missing_is_not_that_package(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").write_text("")
    (tmp_path / "parts" / "absent.py").write_text(
        "try:\n    import absent\nexcept ImportError:\n    absent = None\n"
    )
    (tmp_path / "main.py").write_text("from parts.absent import absent\nprint('found', absent)\n")
    done = launching.run(tmp_path, "main.py")
    assert done.stdout == "found None\n", done.stderr


def test_names_may_be_declared_global_after_their_first_use():
    source = (
        "flag = 1\ndef main():\n    'about main'\n    import json as tool\n    if flag:\n        global tool, flag\n"
        "    flag = 2\n    def inner():\n        flag = 3\n    inner()\nmain()\nglobal flag\n"
    )
    names = names_after(source)
    assert names["flag"] == 2 and names["tool"].__name__ == "json" and names["main"].__doc__ == "about main"


def test_methods_of_the_same_name_are_called():
    source = "class Table:\n    def iteritems(self): return 'mine'\nx = Table().iteritems()\n"
    assert names_after(source)["x"] == "mine"


def test_the_customary_beginning_of_scripts_with_other_letters(tmp_path):
    (tmp_path / "train.py").write_text(
        "import sys\nreload(sys)\nsys.setdefaultencoding('utf8')\nprint 'läuft'\n"
    )
    assert launching.run(tmp_path, "train.py").stdout == "läuft\n"


def test_names_that_are_not_mentioned_stay_away():
    assert names_for("x = 1\n", False) == {}


def test_modules_of_python_2_are_there_for_a_script_and_its_modules(tmp_path):
    (tmp_path / "data.pkl").write_bytes(b"\x80\x02U\x01\xe9.")  # a str of Python 2
    nets = tmp_path / "nets"
    nets.mkdir()
    (nets / "__init__.py").write_text("")
    (nets / "model.py").write_text("import sizes\nimport Queue\nFULL = Queue.Full\nSIZE = sizes.SIZE\n")
    (nets / "sizes.py").write_text("print 'sizes'\nSIZE = 3\n")
    (tmp_path / "train.py").write_text(
        "import cPickle, StringIO, urllib2, ConfigParser\n"
        "from nets import model\n"
        "read = cPickle.load(open('data.pkl'))\n"
        "print(ascii(read), StringIO.StringIO(u'x').read(), model.SIZE, model.FULL.__name__)\n"
    )
    done = launching.run(tmp_path, "train.py")
    assert done.stdout == "sizes\n'\\xe9' x 3 Full\n", done.stderr


def test_installed_packages_do_not_find_them(tmp_path):
    package = tmp_path / "site-packages" / "lib"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "try:\n    import cPickle\n    FOUND = True\nexcept ImportError:\n    FOUND = False\n"
    )
    (tmp_path / "train.py").write_text(
        "import sys\nsys.path.append('site-packages')\nimport lib\nprint(lib.FOUND)\n"
    )
    assert launching.run(tmp_path, "train.py").stdout == "False\n"


def test_a_module_of_a_script_may_be_loaded_once_more(tmp_path):
    (tmp_path / "settings.py").write_text("count = len([x for x in xrange(4)])\n")
    (tmp_path / "train.py").write_text(
        "import importlib, settings\nsettings.count = 0\nprint(importlib.reload(settings).count)\n"
    )
    done = launching.run(tmp_path, "train.py")
    assert done.stdout == "4\n", done.stderr
