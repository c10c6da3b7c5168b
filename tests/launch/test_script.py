"""`python -m tensorfleet script.py`: one process, the script as it is."""

import pytest

from tensorfleet.launch import script
from tests.support import launching


def run(tmp_path, source, *arguments, before=()):
    (tmp_path / "train.py").write_text(source)
    return launching.run(tmp_path, *before, "train.py", *arguments)


def test_a_script_runs_as_the_main_program(tmp_path):
    (tmp_path / "helper.py").write_text("import tensorflow as tf\nVALUE = tf.__name__\n")
    done = run(
        tmp_path,
        """
import sys
import tensorflow as tf
import helper
tf.app.flags.DEFINE_integer("steps", 1, "")
def main(argv):
    print(__name__, helper.VALUE, tf.app.flags.FLAGS.steps, sys.argv, tf.Session().run(tf.constant(1) + 2))
if __name__ == "__main__":
    tf.app.run()
""",
        "--steps=7",
    )
    assert done.stdout.strip() == "__main__ tensorfleet 7 ['train.py', '--steps=7'] 3", done.stderr


def test_exit_codes_are_the_scripts(tmp_path):
    assert run(tmp_path, "raise SystemExit(7)").code == 7


def test_tracebacks_begin_at_the_script(tmp_path):
    done = run(tmp_path, "def f():\n    raise KeyError('lost')\nf()\n")
    assert done.code == 1
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Traceback") and 'File "train.py", line 3' in lines[1]
    assert lines[-1] == "KeyError: 'lost'"


def test_python_2_is_named_with_its_line(tmp_path):
    done = run(tmp_path, 'x = 1\nprint "loss", x\n')
    assert done.code == 1
    assert "train.py:2: this is Python 2" in done.stderr
    assert 'print "loss", x' in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "print x",
        "exec 'x'",
        "except ValueError, e: pass",
        "x = 10L",
        "mode = 0777",
        "if 1 <> 2: pass",
        "y = `x`",
        "raise E, 'm'",
    ],
)
def test_statements_of_python_2_are_recognized(line):
    source = ("try: pass\n" if line.startswith("except") else "") + line + "\n"
    with pytest.raises(SyntaxError) as caught:
        compile(source, "old.py", "exec")
    assert "this is Python 2" in script._about_old_syntax(caught.value)


def test_python_2_in_an_imported_module_is_named_too(tmp_path):
    (tmp_path / "helper.py").write_text("print 'hello'\n")
    done = run(tmp_path, "import helper\n")
    assert done.code == 1
    assert "helper.py:1: this is Python 2" in done.stderr


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("for i in xrange(3): pass", "xrange is Python 2; in Python 3 it is range."),
        ("import cPickle", "The module cPickle is Python 2's; in Python 3 it is pickle."),
        ("{}.iteritems()", "dict.iteritems is Python 2; in Python 3 it is items."),
    ],
)
def test_names_of_python_2_come_with_their_successor(source, hint):
    with pytest.raises((NameError, ImportError, AttributeError)) as caught:
        exec(source)
    assert script._about_old_names(caught.value) == hint


def test_an_ordinary_syntax_error_stays_one(tmp_path):
    done = run(tmp_path, "x = (1,\n")
    assert done.code == 1
    assert "SyntaxError" in done.stderr and "Python 2" not in done.stderr


def test_a_missing_script_is_named(tmp_path):
    done = launching.run(tmp_path, "nowhere.py")
    assert done.code == 2
    assert "no such script: nowhere.py" in done.stderr


def test_without_the_alias_tensorflow_is_what_is_installed(tmp_path):
    (tmp_path / "tensorflow.py").write_text("__version__ = 'the real one'\n")
    done = run(tmp_path, "import tensorflow; print(tensorflow.__version__)", before=["--no-alias"])
    assert done.stdout.strip() == "the real one"


def test_decoding_text_is_python_2():
    try:
        "".decode("utf-8")
    except AttributeError as error:
        assert "leave out .decode" in script._about_old_names(error)
