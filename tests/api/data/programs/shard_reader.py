"""A worker that counts every record of a shared input on the parameter server, and says which it has used."""

import sys
import time

import tensorfleet as tf
from tensorfleet.cluster.membership import tf_config


def main(shards, size, epochs, at_death):
    config = tf_config.read()
    server = tf.train.Server(config.cluster, config.task_type, config.task_index)
    if config.task_type == "ps":
        server.join()
        return
    device = f"/job:{config.task_type}/task:{config.task_index}"
    with tf.device(tf.train.replica_device_setter(cluster=config.cluster, worker_device=device)):
        step = tf.train.get_or_create_global_step()
        dataset = tf.fleet.shard_dataset(
            lambda shard: tf.data.Dataset.range(size * shard, size * shard + size),
            shards,
            server.target,
            num_epochs=epochs,
            at_death=at_death,
        )
        following = tf.data.make_initializable_iterator(dataset)
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, following.initializer)
        record = following.get_next()
        train = tf.assign_add(step, 1)
    with tf.train.MonitoredTrainingSession(server.target, is_chief=config.is_chief) as sess:
        while not sess.should_stop():
            number, _ = sess.run([record, train])
            print(f"used {number}", flush=True)
            time.sleep(0.005)  # a step takes time, and the test acts in the middle of the training


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
