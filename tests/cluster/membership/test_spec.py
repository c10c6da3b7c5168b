"""Jobs and tasks of a cluster, in every form they are written."""

import pytest

import tensorfleet as tf

JOBS = {"ps": ["a:1", "b:1"], "worker": ["c:1"]}


def test_lists_number_their_tasks_from_zero():
    spec = tf.train.ClusterSpec(JOBS)
    assert spec.jobs == ["ps", "worker"]
    assert spec.num_tasks("ps") == 2
    assert spec.task_indices("ps") == [0, 1]
    assert spec.task_address("ps", 1) == "b:1"
    assert spec.job_tasks("worker") == ["c:1"]
    assert spec.as_dict() == JOBS
    assert bool(spec)
    assert not tf.train.ClusterSpec({})


def test_sparse_tasks_keep_their_numbers():
    spec = tf.train.ClusterSpec({"worker": {1: "b:1", 3: "d:1"}})
    assert spec.task_indices("worker") == [1, 3]
    assert spec.job_tasks("worker") == [None, "b:1", None, "d:1"]
    assert spec.as_dict() == {"worker": {1: "b:1", 3: "d:1"}}


def test_numbers_may_be_written_as_text_as_in_json():
    spec = tf.train.ClusterSpec({"worker": {"1": "b:1", "3": "d:1"}})
    assert spec.as_dict() == {"worker": {1: "b:1", 3: "d:1"}}


def test_a_copy_has_its_jobs_by_name_and_one_without_tasks_is_kept():
    spec = tf.train.ClusterSpec(tf.train.ClusterSpec({"worker": ["b:1"], "ps": []}))
    assert spec.jobs == ["ps", "worker"]
    assert spec.as_dict() == {"ps": {}, "worker": ["b:1"]}


def test_protos_and_specs_give_the_same_cluster():
    spec = tf.train.ClusterSpec(JOBS)
    assert tf.train.ClusterSpec(spec) == spec
    assert tf.train.ClusterSpec(spec.as_cluster_def()) == spec
    assert spec != tf.train.ClusterSpec({"ps": ["a:1"]})


@pytest.mark.parametrize("bad", [["a:1"], {"ps": "a:1"}, {"ps": [1]}, {1: ["a:1"]}, {"ps": {"first": "a:1"}}])
def test_malformed_clusters_are_refused(bad):
    with pytest.raises(TypeError):
        tf.train.ClusterSpec(bad)


def test_unknown_jobs_and_tasks_are_named():
    spec = tf.train.ClusterSpec(JOBS)
    with pytest.raises(ValueError, match="No such job in cluster: 'chief'"):
        spec.num_tasks("chief")
    with pytest.raises(ValueError, match="No task with index 2 in job 'ps'"):
        spec.task_address("ps", 2)
