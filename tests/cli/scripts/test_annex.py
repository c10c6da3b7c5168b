import subprocess
import sys

# `None` is what an import of a package that is not installed finds.
WITHOUT = "import sys; sys.modules['tensorfleet_legacy'] = None\n"


def run(program: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)


def test_a_script_of_python_3_runs_without_the_annex(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import tensorflow as tf\nwith tf.Session() as s:\n    print(s.run(tf.constant(2) * 3))\n"
    )
    program = f"from tensorfleet.cli.scripts.script import run_script\nrun_script({str(script)!r}, [])"
    done = run(WITHOUT + program)
    assert (done.stdout, done.returncode) == ("6\n", 0), done.stderr


def test_a_script_of_python_2_is_refused_without_the_annex(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("print 'hello'\n")
    program = f"from tensorfleet.cli.scripts.script import run_script\nrun_script({str(script)!r}, [])"
    assert "this is Python 2" in run(WITHOUT + program).stderr
    assert run(program).stdout == "hello\n"


def test_the_flags_of_a_script_are_read_without_the_annex(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import tensorflow as tf\ntf.app.flags.DEFINE_string('ps_hosts', '', '')\n")
    program = (
        "from pathlib import Path\nfrom tensorfleet.cli.scripts.flags import flags_of\n"
        f"print([flag.name for flag in flags_of(Path({str(script)!r})).values()])"
    )
    assert run(WITHOUT + program).stdout == run(program).stdout == "['ps_hosts']\n"


def test_names_of_the_annex_are_missing_without_it():
    done = run(
        WITHOUT
        + "import tensorfleet as tf\ntf.constant(1.0) + tf.layers.dense(tf.ones([1, 2]), 1)\ntf.keras.layers.Dense"
    )
    assert "AttributeError: module 'tf.keras' has no attribute 'layers'" in done.stderr
