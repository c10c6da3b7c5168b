"""tf.profiler.profile: what a graph costs."""

import pytest

import tensorfleet as tf

Builder = tf.profiler.ProfileOptionBuilder


@pytest.fixture
def graph():
    with tf.Graph().as_default() as g:
        x = tf.placeholder(tf.float32, [8, 4], "x")
        with tf.variable_scope("fc"):
            w, b = tf.get_variable("w", [4, 3]), tf.get_variable("b", [3])
            tf.nn.relu(tf.matmul(x, w) + b, name="out")
        tf.get_variable("counter", [], trainable=False)
        yield g


def test_parameters_are_those_of_the_trainable_variables(graph):
    options = Builder(Builder.trainable_variables_parameter()).with_empty_output().build()
    root = tf.profiler.profile(graph, options=options)
    assert (root.name, root.total_parameters) == ("_TFProfRoot", 15)
    (scope,) = root.children
    assert [(c.name, c.parameters) for c in scope.children] == [("fc/b", 3), ("fc/w", 12)]


def test_a_product_is_a_multiplication_and_an_addition_each(graph):
    options = Builder(Builder.float_operation()).with_node_names(hide_name_regexes=[".*Initializer.*"])
    root = tf.profiler.profile(graph, cmd="op", options=options.with_empty_output().build())
    costs = {c.name: c.total_float_ops for c in root.children}
    assert costs == {"MatMul": 2 * 8 * 4 * 3, "AddV2": 24}
    assert [c.name for c in root.children] == ["MatMul", "AddV2"]


def test_times_come_from_a_traced_run(graph):
    meta = tf.RunMetadata()
    with tf.Session(graph=graph) as session:
        session.run(tf.global_variables_initializer())
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run("fc/out:0", {"x:0": [[1.0] * 4] * 8}, options, meta)
    options = Builder(Builder.time_and_memory(min_bytes=0)).with_empty_output().build()
    assert tf.profiler.profile(graph, meta, options=options).total_exec_micros > 0


def test_the_report_is_printed_or_written(graph, capsys, tmp_path):
    tf.profiler.profile(graph, options=Builder.trainable_variables_parameter())
    printed = capsys.readouterr().out
    assert "_TFProfRoot (--/15 params)" in printed and "fc/w (4x3, 12/12 params)" in printed
    options = Builder(Builder.trainable_variables_parameter()).with_file_output(str(tmp_path / "p")).build()
    tf.profiler.profile(graph, options=options)
    assert (tmp_path / "p").read_text() == printed.rstrip("\n")
    assert capsys.readouterr().out == ""


def test_the_profiler_by_its_old_names(graph):
    analyzer = tf.contrib.tfprof.model_analyzer
    options = {**analyzer.TRAINABLE_VARS_PARAMS_STAT_OPTIONS, "output": "none"}
    old = analyzer.print_model_analysis(graph, tfprof_options=options)
    new = tf.profiler.profile(graph, options=options)
    assert old.total_parameters == new.total_parameters > 0
