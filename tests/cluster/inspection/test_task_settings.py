"""The settings that a task uses, as the task itself tells them."""

import json

import pytest

import tensorfleet as tf
from tensorfleet.cluster.inspection import topics
from tensorfleet.cluster.inspection.ask import ask
from tensorfleet.cluster.transport import token
from tensorfleet.testing.cluster import ProcessCluster

SECRET = "a-secret-of-16-characters"


def told():
    """What this process tells, by name; and all of it as it goes over the wire."""
    content = topics.answer(None, "somebody", "settings", "{}").content
    return {setting["name"]: setting for setting in content["settings"]}, json.dumps(content)


@pytest.fixture
def unsecured(monkeypatch):
    """Nothing is set by `tf.fleet.secure`, and nothing stays."""
    for name in ("token", "tls", "mutual"):
        monkeypatch.setattr(token.secured, name, None)


@pytest.mark.usefixtures("unsecured")
def test_a_setting_comes_with_its_value_and_where_it_is_from(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_WAIT_SECONDS", "12.5")
    monkeypatch.delenv("TENSORFLEET_STEP_SECONDS", raising=False)
    settings, _ = told()
    wait, step = settings["TENSORFLEET_WAIT_SECONDS"], settings["TENSORFLEET_STEP_SECONDS"]
    assert (wait["value"], wait["default"], wait["source"]) == ("12.5", "600", "environment")
    assert (step["value"], step["source"]) == ("86400", "default")
    assert "TENSORFLEET_PLACED" not in settings  # the launcher's own


@pytest.mark.usefixtures("unsecured")
def test_what_the_program_changes_while_it_runs_is_told(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_WIRE", "bfloat16")
    assert told()[0]["TENSORFLEET_WIRE"]["value"] == "bfloat16"
    monkeypatch.setenv("TENSORFLEET_WIRE", "float16")
    assert told()[0]["TENSORFLEET_WIRE"]["value"] == "float16"


@pytest.mark.usefixtures("unsecured")
@pytest.mark.parametrize("name", ["TENSORFLEET_TOKEN", "TENSORFLEET_DASHBOARD_KEY"])
def test_a_secret_of_the_environment_is_never_sent(monkeypatch, name):
    monkeypatch.setenv(name, SECRET)
    settings, text = told()
    assert settings[name]["value"] == "set" and SECRET not in text


@pytest.mark.usefixtures("unsecured")
@pytest.mark.parametrize("secret", [SECRET, SECRET.encode()])
def test_what_the_program_has_secured_goes_before_the_environment(monkeypatch, secret):
    monkeypatch.setenv("TENSORFLEET_TLS", "/of/the/environment")
    tf.fleet.secure(token=secret, tls="/of/the/program", mutual=True)
    settings, text = told()
    shown = {name: (one["value"], one["source"]) for name, one in settings.items()}
    assert shown["TENSORFLEET_TOKEN"] == ("set", "program")
    assert shown["TENSORFLEET_TLS"] == ("/of/the/program", "program")
    assert shown["TENSORFLEET_TLS_MUTUAL"] == ("1", "program")
    assert SECRET not in text


def test_another_process_tells_its_own_settings(monkeypatch):
    with ProcessCluster(ps=1, env={"TENSORFLEET_REPORT_SECONDS": "77"}) as cluster:
        monkeypatch.setenv("TENSORFLEET_REPORT_SECONDS", "5")
        content = ask("ps/0", cluster.target("ps", 0).removeprefix("grpc://"), "settings").content
    (report,) = [s for s in content["settings"] if s["name"] == "TENSORFLEET_REPORT_SECONDS"]
    assert (report["value"], report["source"]) == ("77", "environment")


@pytest.mark.parametrize(("allowed", "answers"), [("full", True), ("stats", True), ("off", False)])
def test_inspection_decides_whether_settings_are_told(monkeypatch, allowed, answers):
    monkeypatch.setenv("TENSORFLEET_INSPECTION", allowed)
    if answers:
        assert told()[0]["TENSORFLEET_INSPECTION"]["value"] == allowed
    else:
        with pytest.raises(tf.errors.PermissionDeniedError, match="does not answer 'settings'"):
            told()
