"""tf.contrib.learn.graph_actions: training, evaluation and inference of graphs."""

import os

import numpy as np
import pytest

import tensorfleet as tf

actions = tf.contrib.learn.graph_actions


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as result:
        yield result
    actions.clear_summary_writers()


def model(rate=0.1):
    """A variable that goes to three: what trains it, the loss, the variable."""
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    loss = tf.square(w - 3.0, name="loss")
    return tf.train.GradientDescentOptimizer(rate).minimize(loss, step), loss, w


def train(graph, folder, **more):
    op, loss, _ = model()
    return actions.train(graph, str(folder), op, loss, **more)


def test_a_graph_is_trained_and_saved(graph, tmp_path):
    loss = train(graph, tmp_path, steps=20)
    assert 0 <= loss < 1
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-20")
    assert any(name.startswith("events.") for name in os.listdir(tmp_path))


def test_steps_go_on_from_a_checkpoint_and_most_steps_do_not(graph, tmp_path):
    train(graph, tmp_path, steps=3)
    for more, wanted in (({"steps": 2}, 5), ({"max_steps": 6}, 6), ({"max_steps": 6}, 6)):
        with tf.Graph().as_default() as other:
            train(other, tmp_path, **more)
        assert tf.train.load_variable(str(tmp_path), "global_step") == wanted


def test_monitors_see_each_step_and_may_end_the_training(graph, tmp_path):
    class Watches(tf.contrib.learn.monitors.BaseMonitor):
        seen: list = []

        def step_begin(self, step):
            return ["loss:0"]

        def step_end(self, step, output):
            self.seen.append((step, float(output["loss:0"])))
            return step == 2

    watches = Watches()
    train(graph, tmp_path, steps=9, monitors=[watches])
    assert [step for step, _ in watches.seen] == [1, 2] and watches.seen[0][1] == 9


def test_the_end_of_what_is_fed_ends_the_training(graph, tmp_path):
    given = iter([{}, {}])
    train(graph, tmp_path, feed_fn=lambda: next(given))
    assert tf.train.load_variable(str(tmp_path), "global_step") == 2


def test_a_loss_that_is_no_number_is_an_error_unless_that_is_allowed(graph, tmp_path):
    op, loss, _ = model()
    with pytest.raises(tf.contrib.learn.NanLossDuringTrainingError):
        actions.train(graph, str(tmp_path), op, loss * float("nan"), steps=2)
    with tf.Graph().as_default() as other:
        op, loss, _ = model()
        more = {"steps": 2, "fail_on_nan_loss": False}
        assert np.isnan(actions.train(other, str(tmp_path), op, loss * float("nan"), **more))


def test_training_goes_on_when_a_session_is_aborted(graph, tmp_path):
    class Aborts(tf.contrib.learn.monitors.BaseMonitor):
        times = 0

        def step_end(self, step, output):
            self.times += 1
            if self.times == 2:
                raise tf.errors.AbortedError(None, None, "a parameter server was started anew")

    train(graph, tmp_path, steps=4, monitors=[Aborts()])
    assert tf.train.load_variable(str(tmp_path), "global_step") == 4


def test_a_failure_is_raised_after_a_last_checkpoint(graph, tmp_path):
    op, loss, _ = model()
    given = iter([{}, {loss: "no number"}])
    with pytest.raises(ValueError, match="could not convert"):
        actions.train(graph, str(tmp_path), op, loss, feed_fn=lambda: next(given))
    assert tf.train.load_variable(str(tmp_path), "global_step") == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 1, "max_steps": 1}, "Can not provide both steps and max_steps"),
        ({"output_dir": ""}, "Output directory should be non-empty"),
        ({"train_op": None}, "Missing train_op"),
        ({"loss_op": None}, "Missing loss_op"),
    ],
)
def test_a_training_that_makes_no_sense_is_refused(graph, tmp_path, change, message):
    op, loss, _ = model()
    given = {"graph": graph, "output_dir": str(tmp_path), "train_op": op, "loss_op": loss, **change}
    with pytest.raises(ValueError, match=message):
        actions.train(**given)


def test_a_training_needs_a_global_step(graph, tmp_path):
    with pytest.raises(ValueError, match='No "global_step" was provided or found in the graph'):
        actions.train(graph, str(tmp_path), tf.no_op(), tf.constant(1.0))


def test_a_checkpoint_is_evaluated(graph, tmp_path):
    train(graph, tmp_path / "model", steps=20)
    with tf.Graph().as_default() as other:
        _, loss, w = model()
        value, update = tf.metrics.mean(w)
        result, step = actions.evaluate(
            other,
            str(tmp_path / "eval"),
            tf.train.latest_checkpoint(str(tmp_path / "model")),
            {"mean": value, "loss": loss},
            update,
            max_steps=3,
        )
    assert step == 20 and result["mean"] == pytest.approx(3, abs=0.1) and result["loss"] < 0.01
    (events,) = os.listdir(tmp_path / "eval")
    tags = {
        v.tag for e in tf.train.summary_iterator(str(tmp_path / "eval" / events)) for v in e.summary.value
    }
    assert tags == {"mean", "loss"}


def test_an_evaluation_without_updates_has_the_last_values(graph, tmp_path):
    model()
    fed = tf.placeholder(tf.float32, [])
    given = iter([{fed: 1.0}, {fed: 2.0}])
    result, step = actions.evaluate(
        graph, str(tmp_path), None, {"x": fed}, feed_fn=lambda: next(given), log_every_steps=1
    )
    assert result == {"x": 2.0} and step == 0


def test_values_are_computed_with_new_variables_or_with_those_of_a_checkpoint(graph, tmp_path):
    train(graph, tmp_path, steps=20)
    with tf.Graph().as_default():
        _, _, w = model()
        x = tf.placeholder_with_default(1.0, [])
        outputs = {"sum": w + x}
        assert actions.run_n(outputs, n=2) == [{"sum": 1.0}, {"sum": 1.0}]
        assert actions.run_feeds(outputs, [{x: 2.0}, {x: 3.0}]) == [{"sum": 2.0}, {"sum": 3.0}]
        path = tf.train.latest_checkpoint(str(tmp_path))
        assert tf.contrib.learn.infer(path, outputs, {x: 5.0})["sum"] == pytest.approx(8, abs=0.1)
        with pytest.raises(ValueError, match="output_dict is invalid"):
            actions.run_feeds({}, [None])
        with pytest.raises(ValueError, match="feed_dicts is invalid"):
            actions.run_feeds(outputs, [])
