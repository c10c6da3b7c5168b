"""Plans that are broken after a pass are noticed, with the names of the pass and of the operation."""

from dataclasses import dataclass, field

import pytest

import tensorfleet as tf
from tensorfleet.passes import pipeline, verify
from tensorfleet.passes.place import Placer
from tensorfleet.passes.plan import PartKind, Plan
from tensorfleet.runtime.resources import ResourceManager
from tensorfleet.runtime.scheduling.program import Program

PS, WORKER = "/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"


class TaskPlacer(Placer):
    """Tasks without a cluster, and no branch or loop to bring to one of them."""

    def gather(self, plan, groups):
        return groups


@dataclass
class Made:
    """A plan after its last pass, and the operations of its graph by their names."""

    plan: Plan
    ops: dict[str, tf.Operation] = field(init=False)

    def __post_init__(self):
        self.ops = {op.name: op for op in self.plan.graph.get_operations()}

    def part_of(self, name):
        return next(part for part in self.plan.parts if self.ops[name] in part.ops)

    def stage_of(self, name):
        return next(stage for stage in self.plan.stages if self.ops[name] in stage.ops)


@pytest.fixture
def local(graph):
    x = tf.placeholder(tf.float32, [3], name="x")
    words = tf.as_string(tf.exp(x, name="exp"), name="words")
    tf.string_to_number(words, name="numbers")
    two = tf.constant(2.0, name="two")
    with tf.control_dependencies([words]):
        y = tf.multiply(x, two, name="product")
    ops = {op.name: op for op in graph.get_operations()}
    fetches = [ops["numbers"].outputs[0], y]
    return Made(pipeline.make_plan(graph, fetches, [ops["words"]], [x], Placer([WORKER])))


@pytest.fixture
def cluster(graph):
    with tf.device("/job:ps"):
        w = tf.get_variable("w", [3], use_resource=False)
    x = tf.placeholder(tf.float32, [3], name="x")
    with tf.device("/job:worker"):
        y = tf.multiply(w, x, name="product")
    with tf.device("/job:ps"):
        update = tf.assign(w, y, name="update")
    plan = pipeline.place_on_tasks(Plan(graph, (y,), (update.op,), (x,)), TaskPlacer([WORKER, PS]))
    return Made(pipeline.cut_into_stages(plan))


def refused(made, after, name, text):
    with pytest.raises(tf.errors.InternalError, match=text) as caught:
        verify.verify(made.plan, after)
    assert f"After the pass '{after}'" in str(caught.value) and f"'{name}'" in str(caught.value)
    assert caught.value.op.name == name


def test_sound_plans_pass(local, cluster):
    for one in pipeline.LOCAL:
        verify.verify(local.plan, one.name)
    for one in pipeline.CLUSTER:
        verify.verify(cluster.plan, one.name)


def test_every_pass_is_observed_in_the_order_of_the_list(graph, monkeypatch):
    seen = []
    monkeypatch.setattr(pipeline, "observers", [lambda plan, name: seen.append(name)])
    pipeline.make_plan(graph, [tf.constant(1.0)], [], [], Placer([WORKER]))
    assert seen == [one.name for one in pipeline.LOCAL]
    seen.clear()
    placed = pipeline.place_on_tasks(Plan(graph, (tf.constant(1.0),), (), ()), TaskPlacer([WORKER]))
    pipeline.cut_into_stages(placed)
    assert seen == [one.name for one in pipeline.CLUSTER]


def test_a_pass_that_breaks_a_plan_is_named_when_the_plan_is_made(graph, monkeypatch):
    def broken(plan):
        plan.ops.reverse()
        return plan

    passes = tuple(one._replace(run=broken) if one.name == "order" else one for one in pipeline.LOCAL)
    monkeypatch.setattr(pipeline, "LOCAL", passes)
    x = tf.placeholder(tf.float32, [])
    with tf.Session() as session, pytest.raises(tf.errors.InternalError, match="After the pass 'order'"):
        session.run(tf.exp(tf.sin(x)), {x: 1.0})


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setattr(pipeline, "observers", [])
    verify.enable()
    verify.enable()
    assert pipeline.observers == [verify.verify]
    verify.disable()
    assert pipeline.observers == []


def test_an_operation_that_is_there_twice(local):
    local.plan.ops.append(local.ops["exp"])
    refused(local, "prune", "exp", "is there twice")


def test_an_operation_before_its_input(local):
    local.plan.ops.reverse()
    refused(local, "fold", "product", "comes before 'words', which it needs")


def test_an_operation_before_one_it_waits_for(local):
    local.plan.ops.remove(local.ops["product"])
    local.plan.ops.insert(0, local.ops["product"])
    refused(local, "fold", "product", "comes before 'words', which it needs")


def test_a_missing_fetch(local):
    local.plan.ops.remove(local.ops["numbers"])
    refused(local, "prune", "numbers", "is fetched and missing")


def test_a_missing_target(local):
    plan = local.plan
    plan.ops = [op for op in plan.ops if op.name != "words"]
    plan.fetches = ()
    refused(local, "prune", "words", "is a target and missing")


def test_a_missing_input(local):
    local.plan.ops.remove(local.ops["exp"])
    refused(local, "fold", "exp", "is missing, and 'words' needs it")


def test_a_constant_that_is_to_run(local):
    local.plan.ops.insert(0, local.ops["two"])
    refused(local, "fold", "two", "is constant, and is to run too")


def test_a_folded_operation_without_a_value(local):
    local.plan.folded.append(local.ops["x"])
    local.plan.feeds, local.plan.ops, local.plan.fetches = (), [], ()
    local.plan.targets = ()
    refused(local, "fold", "x", "was folded, and has no value")


def test_an_operation_of_a_loop_beside_the_loop(graph):
    loop = tf.while_loop(lambda i: i < 5, lambda i: i + 1, [tf.placeholder_with_default(0, [])])
    result = Made(pipeline.make_plan(graph, [loop], [], [], Placer([WORKER])))
    inner = next(op for op in result.plan.inside if op.type == "NextIteration")
    result.plan.ops.insert(0, inner)
    refused(result, "control", inner.name, "is there, and in the loop .* too")


def test_a_lost_loop(graph):
    loop = tf.while_loop(lambda i: i < 5, lambda i: i + 1, [tf.placeholder_with_default(0, [])])
    result = Made(pipeline.make_plan(graph, [loop], [], [], Placer([WORKER])))
    (lost,) = result.plan.loops
    result.plan.ops.remove(lost)
    result.plan.fetches = ()
    refused(result, "loops", lost.name, "is a loop, and missing")


def test_a_live_input_that_an_operation_does_not_have(local):
    local.plan.live[local.ops["exp"], 1] = local.ops["x"]
    refused(local, "order", "exp", "input 1, which it does not have")


def test_an_operation_without_a_device(local):
    del local.plan.devices[local.ops["words"]]
    refused(local, "place", "words", "has no device")


def test_a_plan_without_devices_after_placement(local):
    local.plan.devices.clear()
    verify.verify(local.plan, "order")
    refused(local, "place", "exp", "has no device")


def test_values_shared_with_a_later_operation(local):
    local.plan.same[local.ops["words"]] = local.ops["numbers"]
    refused(local, "share", "words", "cannot take its values from 'numbers'")


def test_an_operation_in_two_parts(local):
    local.part_of("numbers").ops.append(local.ops["words"])
    refused(local, "fuse", "words", "is in the parts 1 and")


def test_an_operation_in_no_part(local):
    local.part_of("product").ops.remove(local.ops["product"])
    refused(local, "fuse", "product", "is in no part")


def test_a_part_that_does_not_wait_for_an_input(local):
    local.part_of("words").after.clear()
    refused(local, "fuse", "words", "does not wait for 'exp' in part 0")


def test_a_part_that_does_not_wait_for_a_control_input(local):
    local.part_of("product").after.clear()
    refused(local, "fuse", "product", "does not wait for 'words'")


def test_a_part_that_waits_for_a_later_one(local):
    local.part_of("exp").after.append(1)
    refused(local, "products", "exp", "waits for part 1 that comes later")


def test_a_part_on_another_device(local):
    local.part_of("exp").device = "/job:worker/replica:0/task:0/device:GPU:0"
    refused(local, "fuse", "exp", "in a part on .*GPU:0")


def test_a_part_that_keeps_a_value_to_itself(local):
    local.part_of("exp").outputs.clear()
    refused(local, "fuse", "exp", "does not give 'exp:0'")


def test_a_product_of_an_operation_elsewhere(local):
    local.part_of("exp").hidden.add(local.ops["words"])
    refused(local, "products", "words", "is in a product of part 0, and not in the part")


def test_a_hidden_output(local):
    local.part_of("exp").hidden.add(local.ops["exp"])
    refused(local, "products", "exp", "does not run, and is an output")


def test_an_operation_in_two_stages(cluster):
    cluster.stage_of("update").ops.append(cluster.ops["product"])
    refused(cluster, "partition", "product", "is in the stages 1 and 2")


def test_an_operation_in_no_stage(cluster):
    cluster.stage_of("product").ops.remove(cluster.ops["product"])
    refused(cluster, "partition", "product", "is in no stage")


def test_a_stage_that_does_not_wait_for_another(cluster):
    cluster.stage_of("update").after.clear()
    refused(cluster, "partition", "update", "does not wait for 'product' in stage 1")


def test_a_stage_that_waits_for_a_later_one(cluster):
    cluster.stage_of("product").after.append(2)
    refused(cluster, "partition", "product", "waits for stage 2 that comes later")


def test_an_operation_in_a_stage_of_another_task(cluster):
    cluster.stage_of("product").task = "/job:ps/replica:0/task:0"
    refused(cluster, "partition", "product", "in a stage of /job:ps")


def test_a_value_that_no_stage_gives(cluster):
    cluster.plan.fetches = ()
    cluster.stage_of("product").outputs.clear()
    refused(cluster, "partition", "product", "'product:0', which stage 2 takes and no stage gives")


def test_a_fetch_that_no_stage_gives(cluster):
    cluster.stage_of("product").outputs.clear()
    cluster.stage_of("update").inputs.clear()
    refused(cluster, "partition", "product", "does not give the fetch 'product:0'")


def test_a_part_of_a_kind_that_no_program_runs(local):
    local.part_of("words").kind = PartKind.VARYING
    with pytest.raises(tf.errors.InternalError, match="a part of the kind 'varying' .*'words'"):
        Program(local.plan, ResourceManager())
