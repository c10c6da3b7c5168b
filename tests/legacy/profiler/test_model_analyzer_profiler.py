"""tf.profiler.Profiler, its advice, and logs of operations."""

import pytest

import tensorfleet as tf

Builder = tf.profiler.ProfileOptionBuilder


@pytest.fixture
def runs():
    """A graph and the metadata of two runs of it."""
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        w = tf.get_variable("w", [4, 3])
        y = tf.matmul(tf.ones([8, 4]), w, name="product")
        sess.run(tf.global_variables_initializer())
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        metas = [tf.RunMetadata(), tf.RunMetadata()]
        for meta in metas:
            sess.run(y, options=options, run_metadata=meta)
        yield graph, metas


def test_steps_are_profiled_alone_or_together(runs):
    graph, metas = runs
    profiler = tf.profiler.Profiler(graph)
    for step, meta in enumerate(metas):
        profiler.add_step(step, meta)
    options = Builder(Builder.time_and_memory(min_micros=0, min_bytes=0)).with_empty_output()
    both = profiler.profile_name_scope(options.build()).total_exec_micros
    alone = [profiler.profile_graph(options.with_step(i).build()).total_exec_micros for i in range(2)]
    assert min(alone) > 0 and min(alone) <= both + len(graph.get_operations()) and both <= max(alone)
    with pytest.raises(tf.errors.InvalidArgumentError, match="step 7 was not added"):
        profiler.profile_operations(options.with_step(7).build())


def test_advice_tells_the_dearest_operations(runs, capsys):
    graph, metas = runs
    advice = tf.profiler.advise(graph, metas[0])
    assert isinstance(advice, tf.profiler.AdviceProto)
    (first, *_) = advice.checkers["ExpensiveOperationChecker"].reports
    assert first.startswith("top 1 operation type: ") and first.endswith("%)")
    assert "ExpensiveOperationChecker:" in capsys.readouterr().out
    assert list(tf.profiler.advise(graph, metas[0], {"JobChecker": {}}).checkers) == ["JobChecker"]


def test_a_log_of_operations(runs, tmp_path):
    graph, _ = runs
    given = tf.profiler.OpLogProto()
    given.log_entries.add(name="product", types=["dear"])
    tf.profiler.write_op_log(graph, str(tmp_path), given)
    log = tf.profiler.OpLogProto.FromString((tmp_path / "tfprof_log").read_bytes())
    entries = {entry.name: entry for entry in log.log_entries}
    assert entries["product"].float_ops == 2 * 8 * 4 * 3 and list(entries["product"].types) == ["dear"]
    assert list(entries["w"].types) == ["_trainable_variables"]
    last = entries["product"].code_def.traces[-1]
    assert log.id_to_string[last.file_id].endswith(".py") and last.lineno > 0
