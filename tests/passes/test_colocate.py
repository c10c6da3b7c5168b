"""Operations that must share a device: what they ask for together, and when that is refused."""

import pytest

import tensorfleet as tf
from tensorfleet.base.devices import DeviceSpec
from tensorfleet.passes.colocate import Incompatible, merged
from tensorfleet.passes.place import Placer

CPUS = [f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in range(4)]
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


def leaf(name, device=None, *groups):
    """An operation in a device scope (None for no scope) that is colocated with others, by name."""
    with tf.device(device):
        result = tf.placeholder_with_default(1.0, [], name=name)
    if groups:
        listed = tf.AttrValue.ListValue(s=[f"loc:@{g}".encode() for g in groups])
        result.op._set_attr("_class", tf.AttrValue(list=listed))
    return result.op


def placed(*ops, soft=False, devices=CPUS):
    """The devices of operations, after the whole graph was checked."""
    placer = Placer(devices, soft)
    placer.check(ops[0].graph._ops)
    return [placer.device_of(op).rpartition("/device:")[2] for op in ops]


def test_an_operation_goes_where_its_follower_asks_to_be():
    assert placed(leaf("a"), leaf("b", "/cpu:2", "a")) == ["CPU:2", "CPU:2"]


def test_a_group_asks_for_what_its_members_ask_for_together():
    assert placed(leaf("a", "/job:localhost"), leaf("b", "/cpu:3", "a")) == ["CPU:3", "CPU:3"]


def test_operations_may_be_colocated_with_each_other():
    assert placed(leaf("a", None, "b"), leaf("b", None, "a"), leaf("c", "/cpu:1", "a")) == ["CPU:1"] * 3


def test_groups_that_share_a_member_are_one_group():
    ops = leaf("a"), leaf("b", "/cpu:2"), leaf("c", None, "a", "b")
    assert placed(*ops) == ["CPU:2"] * 3


def test_a_group_need_not_be_named_after_an_operation():
    assert placed(leaf("a", "/cpu:1", "together"), leaf("b", None, "together")) == ["CPU:1", "CPU:1"]


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        (("/cpu:1", "/cpu:2"), "incompatible ids: '/device:CPU:2' and '/device:CPU:1'"),
        (("/gpu:0", "/cpu:2"), "incompatible types: '/device:CPU:2' and '/device:GPU:0'"),
        (("/job:ps", "/job:worker"), "incompatible jobs: '/job:worker' and '/job:ps'"),
        (("/task:0", "/task:1"), "incompatible tasks: '/task:1' and '/task:0'"),
    ],
)
def test_members_that_ask_for_different_devices_are_refused(devices, said):
    leaf("a", devices[0])
    b = leaf("b", devices[1], "a")
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        placed(b)
    assert f"Cannot colocate nodes b and a: Cannot merge devices with {said}. Change the tf.device" in str(
        e.value
    )


def test_a_refusal_is_repeated_at_the_next_run():
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 4})) as sess:
        fine = tf.constant(1.0) + 1.0
        assert sess.run(fine) == 2.0
        leaf("a", "/cpu:1")
        leaf("b", "/cpu:2", "a")
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot colocate nodes b and a"):
                sess.run(fine)


def test_soft_placement_leaves_open_what_members_disagree_about():
    assert placed(leaf("a", "/cpu:1"), leaf("b", "/cpu:2", "a"), soft=True) == ["CPU:0", "CPU:0"]
    ops = leaf("c", "/gpu:0"), leaf("d", "/cpu:1", "c"), leaf("e", "/cpu:2", "c")
    assert placed(*ops, soft=True) == ["CPU:2"] * 3


def test_soft_placement_ignores_a_colocation_of_state_on_two_devices():
    with tf.device("/cpu:3"):
        v = tf.Variable(1.0, name="v", use_resource=True)
    with tf.device("/cpu:1"):
        w = tf.Variable(1.0, name="w", use_resource=True)
    w.op._set_attr("_class", tf.AttrValue(list=tf.AttrValue.ListValue(s=[b"loc:@v"])))
    assert placed(v.op, w.op, soft=True) == ["CPU:3", "CPU:1"]


@pytest.mark.parametrize("resource", [False, True])
def test_operations_stay_with_the_state_they_use_whatever_they_ask_for(resource):
    with tf.device("/cpu:3"):
        v = tf.Variable(1.0, name="v", use_resource=resource)
    with tf.device("/cpu:1"):
        change = tf.assign(v, 2.0)
    assert placed(v.initializer, change.op) == ["CPU:3", "CPU:3"]


def test_a_queue_that_asks_for_nothing_goes_to_its_first_user():
    queue = tf.FIFOQueue(3, [tf.float32], shapes=[[]])
    sizes = []
    for device in ("/cpu:1", "/cpu:2"):
        with tf.device(device):
            sizes.append(queue.size().op)
    assert placed(queue.queue_ref.op, *sizes) == ["CPU:1"] * 3


def test_one_operation_cannot_use_state_of_two_devices():
    with tf.device("/cpu:1"):
        one = tf.raw_ops.VariableV2(shape=[], dtype=tf.float32)
    with tf.device("/cpu:2"):
        two = tf.raw_ops.VariableV2(shape=[], dtype=tf.float32)
    both = tf.raw_ops.RefMerge(inputs=[one, two])[0].op
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="connected by a reference or resource connection"
    ):
        placed(both)


def test_a_group_has_a_device_that_runs_its_state_and_who_asks():
    a = leaf("a")
    with tf.colocate_with(a):
        b = tf.py_func(lambda: 1.0, [], tf.float32).op
    assert placed(a, b, devices=[*CPUS, GPU]) == ["CPU:0", "CPU:0"]
    assert placed(leaf("c"), leaf("d", None, "c"), devices=[*CPUS, GPU]) == ["GPU:0", "GPU:0"]


def test_soft_placement_takes_another_device_of_the_same_type():
    assert placed(leaf("a", "/gpu:7"), soft=True, devices=[*CPUS, GPU]) == ["GPU:0"]


def test_a_variable_that_has_been_placed_stays():
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 4})) as sess:
        v = tf.Variable(1.0, name="v", use_resource=True)
        sess.run(v.initializer)
        late = leaf("late", "/cpu:1", "v")
        with pytest.raises(tf.errors.InvalidArgumentError, match="v is on .*CPU:0 already"):
            sess.run(late)


def test_a_group_that_no_device_fits_is_listed():
    leaf("a", "/job:ps/task:0")
    b = leaf("b", "/cpu:2", "a")
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        placed(b)
    assert "required incompatible device '/job:ps/task:0/device:CPU:2'" in str(e.value)
    assert "The group: a (PlaceholderWithDefault) /job:ps/task:0, b" in str(e.value)
    assert "allow_soft_placement" not in str(e.value)  # which cannot change the job


def test_merged_names_have_the_parts_of_both():
    one, two = map(DeviceSpec.from_string, ("/job:ps/cpu:1", "/task:3/device:CPU:*"))
    assert str(merged(one, two)) == "/job:ps/task:3/device:CPU:1"
    with pytest.raises(Incompatible, match="incompatible ids"):
        merged(one, DeviceSpec.from_string("/cpu:2"))
    assert str(merged(one, DeviceSpec.from_string("/cpu:2"), soft=True)) == "/job:ps/device:CPU:*"
