"""Workers that come and go, on a durable parameter server that fails over."""

import pytest

import tensorfleet as tf

SIZE, SHARDS = 5, 4


def test_which_shards_were_dealt_is_kept(pair):
    with tf.Graph().as_default(), tf.device("/job:worker/task:0"):
        dataset = tf.fleet.shard_dataset(
            tf.data.Dataset.range(SIZE * SHARDS), SHARDS, pair.worker.target, num_epochs=1
        )
        following = tf.data.make_initializable_iterator(dataset)
        element = following.get_next()
        with pair.session() as sess:
            sess.run(following.initializer)
            got = [int(sess.run(element)) for _ in range(SIZE + 2)]
            pair.fail_over()
            with pytest.raises(tf.errors.OutOfRangeError):
                while True:
                    got.append(int(sess.run(element)))
    assert sorted(got) == list(range(SIZE * SHARDS))


def test_synchronous_training_of_members_goes_on_at_the_server_that_leads(pair):
    graph = tf.Graph()
    with graph.as_default(), tf.device(tf.train.replica_device_setter(ps_tasks=1)):
        step = tf.train.get_or_create_global_step()
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), "members")
        train = opt.apply_gradients([(tf.constant(-1.0), weight)], global_step=step)
        hook = opt.make_session_run_hook(is_chief=True)
        with tf.train.MonitoredTrainingSession(pair.worker.target, is_chief=True, hooks=[hook]) as sess:
            for _ in range(5):
                sess.run(train)
            pair.fail_over()
            for _ in range(5):
                sess.run(train)
            reached, value = sess.run([step, weight])
    # None is lost, and each counts once in both.
    assert reached == value >= 10
