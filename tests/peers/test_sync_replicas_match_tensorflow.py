"""The graphs of SyncReplicasOptimizer and Scaffold have TensorFlow's operations, under its names."""

import pytest

import tensorfleet as tf

# What is compared elsewhere. A difference that is meant: the chief's tokens read the step itself.
INSIDE = ("gradients/",)


def described(graph) -> list:
    result = []
    for op in graph.get_operations():
        if not op.name.startswith(INSIDE):
            inputs = [i.name.replace("/read:0", ":0") for i in op.inputs]
            device = op.device
            if op.type == "FIFOQueueV2":  # TensorFlow 2 adds what 1.15 did not
                device = device.removesuffix("/device:CPU:*")
            result.append((op.name, op.type, inputs, sorted(c.name for c in op.control_inputs), device))
    return result


def sync_graph(lib) -> list:
    with lib.Graph().as_default() as g, lib.device(lib.train.replica_device_setter(1)):
        step = lib.train.get_or_create_global_step()
        v = lib.Variable([1.0, 2.0], name="v")
        e = lib.Variable([[1.0, 2.0], [1.0, 2.0]], name="e")
        loss = lib.reduce_sum(v * 3.0) + lib.reduce_sum(lib.gather(e, [0]))
        opt = lib.train.SyncReplicasOptimizer(lib.train.AdagradOptimizer(0.1), 2, 3)
        opt.minimize(loss, global_step=step)
        opt.make_session_run_hook(True).begin()
        return described(g)


def scaffold_graph(lib) -> list:
    with lib.Graph().as_default() as g:
        lib.Variable([1.0, 2.0], name="v")
        lib.Variable(1.0, name="local", collections=[lib.GraphKeys.LOCAL_VARIABLES])
        scaffold = lib.train.Scaffold(saver=lib.train.Saver())
        scaffold.finalize()
        names = [op for op in described(g) if not op[0].startswith(("save/", "concat"))]
        return [*names, scaffold.init_op.name, scaffold.local_init_op.name, scaffold.ready_op.name]


def supervisor_graph(lib) -> list:
    with lib.Graph().as_default() as g:
        lib.Variable([1.0, 2.0], name="v")
        lib.train.get_or_create_global_step()
        sv = lib.train.Supervisor()
        return [*(op for op in described(g) if not op[0].startswith("save/")), sv.init_op.name]


@pytest.mark.parametrize("build", [sync_graph, scaffold_graph, supervisor_graph])
def test_the_graph_is_the_same(tensorflow, build):
    assert build(tf) == build(tensorflow)
