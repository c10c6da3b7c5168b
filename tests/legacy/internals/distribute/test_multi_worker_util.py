"""Names of devices, tasks of a cluster and variables that are made once for all devices."""

import pytest
from tensorfleet.python.distribute import device_util, multi_worker_util, shared_variable_creator

import tensorfleet as tf

CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}


def test_the_current_device_is_that_of_the_innermost_block():
    with tf.device("/job:worker"), tf.device("/cpu:0"):
        assert device_util.current() == "/job:worker/device:CPU:0"
    with tf.device("/cpu:0"), tf.device("/gpu:0"):
        assert device_util.current() == "/device:GPU:0"
        assert device_util.resolve("/job:worker/task:1") == "/job:worker/replica:0/task:1/device:GPU:0"
    assert tf.get_default_graph().get_operations() == []


def test_names_of_devices_are_completed():
    assert device_util.canonicalize("/cpu:0") == "/replica:0/task:0/device:CPU:0"
    assert (
        device_util.canonicalize("/cpu:0", default="/job:worker")
        == "/job:worker/replica:0/task:0/device:CPU:0"
    )
    assert device_util.get_host_for_device("/job:w/task:1/device:GPU:3") == "/job:w/task:1/device:CPU:0"
    with pytest.raises(ValueError, match="CPU, GPU, TPU"):
        device_util.canonicalize("/device:OTHER:0")


@pytest.mark.parametrize(
    "given", [CLUSTER, tf.train.ClusterSpec(CLUSTER), tf.train.ClusterSpec(CLUSTER).as_cluster_def()]
)
def test_clusters_are_given_in_several_forms(given):
    assert multi_worker_util.normalize_cluster_spec(given).as_dict() == CLUSTER


def test_tasks_know_their_part_in_a_cluster():
    util = multi_worker_util
    assert util.is_chief(CLUSTER, "chief", 0)
    assert not util.is_chief(CLUSTER, "worker", 0)
    assert util.is_chief({"worker": ["b:1", "c:1"]}, "worker", 0)
    assert (util.worker_count(CLUSTER, "worker"), util.id_in_cluster(CLUSTER, "worker", 1)) == (3, 2)
    assert util.collective_leader(CLUSTER, "worker", 0) == "/job:chief/replica:0/task:0"
    assert util.collective_leader({**CLUSTER, "evaluator": ["e:1"]}, "evaluator", 0) == ""
    assert util.collective_leader({}, None, 0) == ""
    assert util.has_worker(CLUSTER)


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda u: u.normalize_cluster_spec(["a:1"]), "should be dict or a `tf.train.ClusterSpec`"),
        (
            lambda u: u.is_chief({"worker": ["a:1"]}, "chief", 0),
            "`task_type` 'chief' not found in cluster_spec.",
        ),
        (lambda u: u.is_chief(CLUSTER, "worker", 2), "The `task_id` 2 exceeds the maximum id of worker."),
        (lambda u: u.worker_count(CLUSTER, "ps"), "Unexpected `task_type` 'ps'"),
        (lambda u: u.id_in_cluster(CLUSTER, "ps", 0), "There is no id for task_type 'ps'"),
        (lambda u: u.id_in_cluster({"chief": ["a:1", "b:1"]}, "chief", 0), "at most one 'chief' job"),
        (lambda u: u.is_chief({"other": ["a:1"]}, "other", 0), "Disallowed task type"),
    ],
)
def test_parts_that_a_cluster_does_not_have_are_refused(ask, text):
    with pytest.raises(ValueError, match=text):
        ask(multi_worker_util)


def test_variables_are_made_by_the_first_device_and_shared():
    store, result = {}, []
    for device in range(3):
        with tf.variable_creator_scope(shared_variable_creator.make_fn(store, device)):
            result.append([tf.Variable(1.0, name="v"), tf.Variable(2.0, name="v")])
    assert result[0][0] is result[1][0] is result[2][0]
    assert result[0][1] is result[1][1] is not result[0][0]
    names = (None, "a_1/b_1/c", "a_1:0", "a1")
    items = [shared_variable_creator._canonicalize_variable_name(n) for n in names]
    assert items == ["Variable", "a/b/c", "a_1:0", "a1"]
