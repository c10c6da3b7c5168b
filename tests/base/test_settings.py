"""Settings: environment variables with a type, a default and a sentence."""

import re
import subprocess
import sys

import pytest

from tensorfleet.base import errors, settings
from tests.support.reading import DOCS, ROOT, tool


def test_a_setting_has_its_default_until_it_is_set(monkeypatch):
    monkeypatch.delenv("TENSORFLEET_WAIT_SECONDS", raising=False)
    assert settings.WAIT_SECONDS() == 600.0
    monkeypatch.setenv("TENSORFLEET_WAIT_SECONDS", " 2.5 ")
    assert settings.WAIT_SECONDS() == 2.5


@pytest.mark.parametrize(
    ("name", "text", "must"),
    [
        ("WAIT_SECONDS", "soon", "a number of seconds"),
        ("WAIT_SECONDS", "-1", "a number of seconds"),
        ("WAIT_SECONDS", "nan", "a number of seconds"),
        ("MAX_NODES", "0", "a whole number of at least 1"),
        ("MAX_FRAME", "64GB", "a whole number of at least 1"),
    ],
)
def test_a_value_that_cannot_be_understood_is_an_error_that_names_the_variable(monkeypatch, name, text, must):
    setting = getattr(settings, name)
    monkeypatch.setenv(setting.name, text)
    with pytest.raises(errors.InvalidArgumentError, match=f"{setting.name} is {text!r}; it must be {must}"):
        setting()


def test_zero_turns_a_switch_off(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_TLS_MUTUAL", "0")
    assert settings.TLS_MUTUAL() is False
    monkeypatch.setenv("TENSORFLEET_TLS_MUTUAL", "1")
    assert settings.TLS_MUTUAL() is True


def in_use(name, **environment):
    """How one setting is used in an environment."""
    by_name = {f"TENSORFLEET_{key}": value for key, value in environment.items()}
    return next(one for one in settings.in_use(by_name) if one.name == f"TENSORFLEET_{name}")


@pytest.mark.parametrize(
    ("name", "text", "value", "source"),
    [
        ("WAIT_SECONDS", None, "600", "default"),
        ("WAIT_SECONDS", "  ", "600", "default"),
        ("WAIT_SECONDS", "600", "600", "environment"),
        ("WAIT_SECONDS", "inf", "inf", "environment"),
        ("SILENT_SECONDS", "0.001", "0.1", "environment"),  # what is used, not what was typed
        ("MAX_FRAME", "123456789012", "123456789012", "environment"),
        ("TLS_MUTUAL", None, "0", "default"),
        ("TLS_MUTUAL", "yes", "1", "environment"),
        ("INSPECTION", "stats", "stats", "environment"),
        ("CACHE", None, "", "default"),
        ("CACHE", "", "", "environment"),  # no cache, unlike the default
    ],
)
def test_a_setting_in_use_has_its_value_and_where_it_comes_from(name, text, value, source):
    one = in_use(name, **({} if text is None else {name: text}))
    assert (one.value, one.source, one.problem) == (value, source, None)


@pytest.mark.parametrize("name", ["TOKEN", "DASHBOARD_KEY"])
def test_of_a_secret_it_is_told_only_that_it_is_set(name):
    secret = "a-secret-of-16-characters"
    assert in_use(name).value == ""
    one = in_use(name, **{name: secret})
    assert (one.value, one.source) == ("set", "environment") and secret not in repr(one)


def test_a_setting_in_use_that_cannot_be_understood_says_so():
    one = in_use("WAIT_SECONDS", WAIT_SECONDS="soon")
    assert (one.value, one.default) == ("soon", "600")
    assert "TENSORFLEET_WAIT_SECONDS is 'soon'; it must be a number of seconds" in one.problem


def test_settings_in_use_are_those_that_people_set():
    names = [one.name for one in settings.in_use({})]
    assert names == [one.name for one in settings.declared() if not one.internal]


def test_a_misspelled_setting_is_named_with_the_one_that_was_meant():
    [sentence] = settings.unknown({"TENSORFLEET_WAIT_SECOND": "1", "TENSORFLEET_WIRE": "", "PATH": ""})
    assert "TENSORFLEET_WAIT_SECOND is not a setting" in sentence
    assert "Did you mean TENSORFLEET_WAIT_SECONDS?" in sentence


def test_importing_warns_of_an_unknown_setting():
    code = "import os; os.environ['TENSORFLEET_SPEED'] = 'high'; import tensorfleet"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "TENSORFLEET_SPEED is not a setting of TensorFleet" in done.stderr


def test_no_setting_is_declared_twice():
    names = [setting.name for setting in settings.declared()]
    assert len(names) == len(set(names))


def test_every_variable_that_the_code_reads_is_declared():
    declared = {setting.name for setting in settings.declared()}
    named = set()
    for package in ("tensorfleet", "tensorfleet_legacy"):
        for file in (ROOT / package).rglob("*.py"):
            named |= set(re.findall(r"\bTENSORFLEET_[A-Z_]*[A-Z]\b", file.read_text()))
    assert named - declared - {"TENSORFLEET_CHAOS"} == set()


def test_the_page_of_settings_is_what_the_code_declares():
    assert (DOCS / "settings.md").read_text() == tool("make_settings").page()
