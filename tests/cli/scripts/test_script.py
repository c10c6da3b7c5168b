"""`python -m tensorfleet script.py`: one process, the script as it is."""

import sysconfig

import pytest

from tensorfleet.cli.scripts import script
from tests.support import launching

pytestmark = pytest.mark.slow  # left out by `make quick`


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


def test_modules_that_import_while_python_says_where_its_own_are(tmp_path):
    done = run(
        tmp_path,
        "import sysconfig\nprint(sysconfig.get_path('stdlib'), sysconfig.get_config_var('EXT_SUFFIX'))",
    )
    assert done.code == 0 and done.stdout.split() == [
        sysconfig.get_path("stdlib"),
        sysconfig.get_config_var("EXT_SUFFIX"),
    ], done.stderr


def test_exit_codes_are_the_scripts(tmp_path):
    assert run(tmp_path, "raise SystemExit(7)").code == 7


def test_tracebacks_begin_at_the_script(tmp_path):
    done = run(tmp_path, "def f():\n    raise KeyError('lost')\nf()\n")
    assert done.code == 1
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Traceback") and 'File "train.py", line 3' in lines[1]
    assert lines[-1] == "KeyError: 'lost'"


def test_hints_that_a_script_is_old_are_for_who_asks(tmp_path):
    source = "import logging\nif 0 is 1:\n    pass\nlogging.warn('x')\n"
    assert run(tmp_path, source).stderr == "WARNING:root:x\n"
    (tmp_path / "train.py").write_text(source)
    asked = launching.run(tmp_path, "train.py", PYTHONWARNINGS="default").stderr
    assert "SyntaxWarning" in asked and "DeprecationWarning: The 'warn' function" in asked


def test_the_launcher_reads_old_spellings_without_a_word(tmp_path):
    (tmp_path / "train.py").write_text("import re\nprint(re.sub('\\d', 'x', 'a1'))\n")
    done = launching.run(tmp_path, "run", "train.py")
    assert (done.code, done.stdout, done.stderr) == (0, "ax\n", "")


def test_a_script_in_python_2_runs(tmp_path):
    done = run(
        tmp_path, 'import tensorflow as tf\nx = 7 / 2\nprint "loss", x, tf.Session().run(tf.constant(x))\n'
    )
    assert (done.code, done.stdout) == (0, "loss 3 3\n")
    assert (
        done.stderr
        == "tensorfleet: train.py is Python 2. Translating it to Python 3; see docs/migrating.md.\n"
    )


def test_python_2_that_cannot_be_translated_is_named_with_its_line(tmp_path):
    done = run(tmp_path, "x = 1\nprint 5L if x else\n")
    assert done.code == 1
    assert "train.py:2: this is Python 2" in done.stderr
    assert "print 5L if x else" in done.stderr


def test_a_module_in_python_2_beside_the_script_runs(tmp_path):
    (tmp_path / "helper.py").write_text("print 'hello'\nHALF = 5 / 2\n")
    done = run(tmp_path, "import helper\nprint(helper.HALF, 5 / 2)\n")
    assert (done.code, done.stdout) == (0, "hello\n2 2.5\n"), done.stderr


def test_a_syntax_error_in_a_module_of_the_script_is_shown_plainly(tmp_path):
    (tmp_path / "helper.py").write_text("x = (1,\n")
    done = run(tmp_path, "import helper\n")
    assert done.code == 1
    files = [line.strip() for line in done.stderr.splitlines() if line.strip().startswith("File")]
    assert len(files) == 2 and files[0].startswith('File "train.py", line 1') and "helper.py" in files[1]
    assert "Python 2" not in done.stderr


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
        assert "leave out .decode" in script._about_old_text(error)


def test_python_is_the_same_one_for_tasks_that_a_script_starts(tmp_path):
    (tmp_path / "train.py").write_text(
        "import os, subprocess, sys\nassert os.environ['PATH'].endswith('/none')\n"
        "said = subprocess.check_output(['python', '-c', 'import sys; print(sys.prefix)'], text=True)\n"
        "print(said.strip() == sys.prefix)\n"
    )
    done = launching.run(tmp_path, "train.py", PATH="/none")
    assert done.stdout == "True\n", done.stderr


def test_what_a_script_does_with_another_server_after_the_end_is_no_failure(tmp_path):
    (tmp_path / "train.py").write_text(
        "import threading, tensorflow as tf\n"
        "cluster = {'ps': ['localhost:0']}\n"
        "server = tf.train.Server(cluster, 'ps', 0)\n"
        "threading.Timer(0.1, server._stopping.set).start()\n"
        "joining = threading.Thread(target=server.join)\n"
        "joining.start()\n"
        "joining.join()\n"
        "again = tf.train.Server({'ps': [server.target[7:]]}, 'ps', 0)\n"
        "raise ValueError('not for a ps')\n"
    )
    done = launching.run(tmp_path, "train.py")
    assert done.code == 0
    assert "the run is over; code after server.join() raised ValueError" in done.stderr


def test_a_script_ends_where_it_joins_its_server(tmp_path):
    done = run(
        tmp_path,
        "import atexit, threading, tensorflow as tf\n"
        "atexit.register(print, 'over')\n"
        "server = tf.train.Server.create_local_server()\n"
        "threading.Timer(0.1, server._stopping.set).start()\n"
        "server.join()\n"
        "print('what TensorFlow never does: perhaps to delete what the chief has saved')\n",
    )
    assert (done.code, done.stdout) == (0, "over\n"), done.stderr


def test_a_process_of_a_pool_gives_its_result_where_it_joins_its_server(tmp_path):
    done = run(
        tmp_path,
        "import multiprocessing, threading, tensorflow as tf\n"
        "def serve(n):\n"
        "    server = tf.train.Server.create_local_server()\n"
        "    threading.Timer(0.1, server._stopping.set).start()\n"
        "    server.join()\n"
        "    return n\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('fork').Pool(1) as pool:\n"
        "        print(pool.apply_async(serve, (7,)).get(60))\n",
    )
    assert (done.code, done.stdout) == (0, "7\n"), done.stderr
