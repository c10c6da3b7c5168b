"""A worker of a synchronous training whose members come and go. Says where it is after every step."""

import sys
import time

import tensorfleet as tf
from tensorfleet.cluster.membership import tf_config


def main(last_step):
    config = tf_config.read()
    server = tf.train.Server(config.cluster, config.task_type, config.task_index)
    if config.task_type == "ps":
        server.join()
        return
    device = f"/job:{config.task_type}/task:{config.task_index}"
    with tf.device(tf.train.replica_device_setter(cluster=config.cluster, worker_device=device)):
        step = tf.train.get_or_create_global_step()
        weight = tf.get_variable("weight", [4], initializer=tf.zeros_initializer())
        opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.05), "members")
        train = opt.minimize(tf.reduce_sum(tf.square(weight - 1.0)), global_step=step)
    hooks = [opt.make_session_run_hook(config.is_chief), tf.train.StopAtStepHook(last_step=last_step)]
    with tf.train.MonitoredTrainingSession(server.target, is_chief=config.is_chief, hooks=hooks) as sess:
        while not sess.should_stop():
            sess.run(train)
            now = sess.run_step_fn(lambda step_context: step_context.session.run(step))
            print(f"at {now} ", flush=True)
            time.sleep(0.005)  # a step takes time, and the test acts in the middle of the training
    print("trained", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
