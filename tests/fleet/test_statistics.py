"""`tf.fleet.stats`: one task or all, dead ones too, and what is refused."""

import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import ProcessCluster


def test_all_tasks_are_asked_and_a_dead_one_says_so():
    with ProcessCluster(ps=2) as cluster:
        cluster.kill("ps", 1)
        answers = tf.fleet.stats(cluster.target("ps", 0))
        assert answers["ps/0"]["task"] == "ps/0"
        assert "ps/1" in answers["ps/1"]["error"] or "cannot be reached" in answers["ps/1"]["error"]
        with pytest.raises(tf.errors.UnavailableError):
            tf.fleet.stats(cluster.target("ps", 0), "ps/1")


def test_a_session_names_its_cluster_and_a_task_has_either_form_of_name():
    with ProcessCluster(ps=1) as cluster:
        with tf.Session(cluster.target("ps", 0)) as sess:
            assert tf.fleet.stats(sess, "ps/0")["task"] == "ps/0"
            assert tf.fleet.stats(sess, "/job:ps/task:0")["task"] == "ps/0"


def test_a_session_without_a_cluster_is_this_process():
    with tf.Session() as sess:
        assert list(tf.fleet.stats(sess)) == ["main/0"]


@pytest.mark.parametrize("target", [3, None, [], b"grpc://localhost:1"])
def test_what_is_no_target_is_refused(target):
    with pytest.raises(TypeError, match="session_or_target must be a session or a string"):
        tf.fleet.stats(target)


def test_a_task_that_is_no_text_is_refused():
    with pytest.raises(TypeError, match="task must be a name such as worker/1"):
        tf.fleet.stats("", 3)


def test_an_unknown_task_is_refused_with_those_there_are():
    with pytest.raises(tf.errors.InvalidArgumentError, match="no task 'ps/7'. The tasks are main/0"):
        tf.fleet.stats("", "ps/7")


def test_a_target_of_another_kind_is_refused():
    with pytest.raises(tf.errors.NotFoundError, match="No session factory"):
        tf.fleet.stats("http://localhost:1")


def test_nobody_at_the_target_is_an_error():
    with pytest.raises(tf.errors.UnavailableError, match="cannot be reached"):
        tf.fleet.stats("grpc://localhost:1")
