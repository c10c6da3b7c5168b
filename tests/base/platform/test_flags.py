"""Scripts run in processes of their own: flags are global, and `tf.app.run` ends the program."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # left out by `make quick`

SCRIPT = """
import tensorfleet as tf
flags = tf.app.flags
flags.DEFINE_integer("n", 3, "a number")
flags.DEFINE_string("s", "x", "a text")
flags.DEFINE_boolean(flag_name="b", default_value=False, docstring="a switch")
FLAGS = tf.flags.FLAGS
{before}
def main(argv):
    print(argv[1:], FLAGS.n, FLAGS.s, FLAGS.b, "n" in FLAGS)
    return {result}
if __name__ == "__main__":
    tf.app.run({run})
"""


def script(*args, before="", result="None", run=""):
    code = SCRIPT.format(before=before, result=result, run=run)
    return subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, timeout=60)


def test_main_gets_what_is_not_a_flag():
    assert script("--n=5", "--b", "rest").stdout == "['rest'] 5 x True True\n"


def test_main_can_be_given_with_its_arguments():
    done = script(run="main=lambda argv: print(argv, FLAGS.n), argv=['me', '--n=4', 'a']")
    assert done.stdout == "['me', 'a'] 4\n"


def test_flags_nobody_defined_are_left_for_main():
    assert script("--unknown=1", "--n=2").stdout == "['--unknown=1'] 2 x False True\n"


def test_flags_can_be_read_before_the_program_runs():
    assert script("--n=7", before="print(FLAGS.n + 1)").stdout.splitlines()[0] == "8"


def test_a_flag_set_by_the_program_keeps_its_value():
    assert script("--n=7", before="FLAGS.s = 'set'").stdout == "[] 7 set False True\n"


def test_what_is_no_flag_may_be_set_as_it_could_before_absl():
    assert script(
        before="FLAGS.folder = './model'; print(FLAGS.folder, 'folder' in FLAGS)"
    ).stdout.startswith("./model False")


def test_the_result_of_main_is_the_exit_code():
    assert script(result="3").returncode == 3
    assert script().returncode == 0


def test_a_bad_value_says_which_flag():
    done = script("--n=abc")
    assert done.returncode == 1
    assert "flag --n=abc" in done.stdout + done.stderr


def test_help_lists_the_flags_of_the_script():
    done = script("--help")
    assert "--n: a number" in done.stdout + done.stderr


def test_the_old_keywords_of_a_definition_warn():
    assert "please use (name, default, help)" in script().stderr


def test_a_whole_number_may_be_written_with_an_exponent():
    before = "flags.DEFINE_integer('steps', 1e6, ''); print(FLAGS.steps)"
    assert script("--steps=7", before=before).stdout.splitlines()[0] == "7"
    assert script(before=before).stdout.splitlines()[0] == "1000000"


def test_a_default_that_is_no_whole_number_stays_as_the_script_gave_it():
    before = "flags.DEFINE_integer('train_size', float('inf'), ''); print(FLAGS.train_size)"
    assert script("--train_size=7", before=before).stdout.splitlines()[0] == "7"
    assert script(before=before).stdout.splitlines()[0] == "inf"


def test_unknown_flags_are_ignored_with_one_warning_where_the_program_does_not_run_by_app():
    before = "print(FLAGS.n, FLAGS.s, FLAGS.b)\nraise SystemExit"
    done = script("--n=7", "--lr=0.1", "--epochs", "3", "-v", "--b", before=before)
    assert (done.stdout, done.returncode) == ("7 x True\n", 0)
    assert done.stderr.count("Unknown command line flags --lr, --epochs, -v: ignored") == 1


def test_flags_and_argparse_share_a_command_line():
    before = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
known, _ = parser.parse_known_args()
print(known.lr, FLAGS.n)
raise SystemExit
"""
    assert script("--lr", "0.5", "--n", "9", before=before).stdout == "0.5 9\n"


def test_what_follows_two_dashes_is_no_flag():
    done = script("--", "--lr=0.1", before="print(FLAGS.n)\nraise SystemExit")
    assert done.stdout == "3\n" and "Unknown" not in done.stderr


def test_a_bad_value_is_an_error_however_the_flags_are_parsed():
    done = script("--n=abc", before="FLAGS.n")
    assert done.returncode == 1 and "flag --n=abc" in done.stderr


def test_help_is_shown_where_the_program_does_not_run_by_app():
    done = script("--help", before="print(FLAGS.n)\nraise SystemExit")
    assert "--n: a number" in done.stdout + done.stderr and "Unknown" not in done.stderr


def test_a_default_of_another_type_is_kept_with_a_warning():
    before = (
        "flags.DEFINE_string('rate', 0.5, ''); flags.DEFINE_string('sizes', [1, 2], '')\n"
        "flags.DEFINE_boolean('many', 7, ''); flags.DEFINE_float('steps', (1.0, 2.0), '')\n"
        "print([FLAGS.rate, FLAGS.sizes, FLAGS.many, FLAGS.steps])\n"
    )
    done = script(before=before)
    assert done.stdout.splitlines()[0] == "[0.5, [1, 2], 7, (1.0, 2.0)]"
    for flag, value, kind in (
        ("rate", "0.5", "string"),
        ("sizes", "[1, 2]", "string"),
        ("many", "7", "bool"),
    ):
        assert f"The default of the flag --{flag} is {value}, which is not a {kind}." in done.stderr
    given = script("--rate=2", "--sizes=3", "--nomany", "--steps=4", before=before)
    assert given.stdout.splitlines()[0] == "['2', '3', False, 4.0]"


def test_text_that_is_no_number_is_still_refused_as_a_default():
    assert "IllegalFlagValueError" in script(before="flags.DEFINE_float('rate', 'fast', '')").stderr


def test_a_flag_that_is_not_there_is_an_attribute_error():
    assert "AttributeError: nothing" in script(before="FLAGS.nothing").stderr


def test_a_flag_that_absl_has_too_is_the_scripts():
    before = "flags.DEFINE_string('log_dir', 'here', '')"
    done = script(before=before, run="lambda _: print(FLAGS.log_dir)")
    assert done.stdout == "here\n"
    done = script("--log_dir=there", before=before, run="lambda _: print(FLAGS.log_dir)")
    assert done.stdout == "there\n"


def test_the_beginning_of_one_flags_name_is_enough_where_the_program_does_not_run_by_app():
    before = "flags.DEFINE_string('task_index', '', '')\nprint(FLAGS.task_index)\nraise SystemExit"
    assert script("--task=1", before=before).stdout == "1\n"
    assert "Unknown command line flag" in script("--tusk=1", before=before).stderr


def test_a_script_may_parse_its_flags_as_before_absl():
    before = "FLAGS._parse_flags(); print(sorted(FLAGS.__flags)[-1])"
    assert script("--n=5", before=before).stdout.endswith("[] 5 x False True\n")
