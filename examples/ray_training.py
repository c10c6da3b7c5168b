"""Train one network inside a Ray program, with workers over parameter servers, on real handwritten digits, to 88 %.

    python examples/ray_training.py
    RAY_ADDRESS=10.0.0.1:6379 python examples/ray_training.py --ps 2 --workers 8      # on a cluster that is running

`tensorfleet.fleet.ray.run` places an actor for each task, runs `train` in each worker, and returns what they return. Ray
brings the function to the nodes; gradients and variables go between the tasks directly.
"""

from __future__ import annotations

import argparse
import sys
import time

import ray
from tensorfleet.examples.tutorials.mnist import input_data

import tensorfleet as tf
from tensorfleet.fleet import ray as fleet_ray

PIXELS, CLASSES = 28 * 28, 10


def network(x: tf.Tensor) -> tf.Tensor:
    """Ten scores per image."""
    hidden = tf.layers.dense(x, 100, tf.nn.relu, name="hidden")
    return tf.layers.dense(hidden, CLASSES, name="scores")


def train(config: dict) -> dict:
    """Runs in each worker: builds the graph, and trains with the others until the last step."""
    task = fleet_ray.get_context()
    tf.set_random_seed(7)
    data = input_data.read_data_sets("/tmp/mnist-data", one_hot=True)
    with tf.device(tf.train.replica_device_setter(cluster=task.cluster, worker_device=task.device)):
        step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [None, PIXELS])
        labels = tf.placeholder(tf.float32, [None, CLASSES])
        scores = network(x)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=scores))
        right = tf.equal(tf.argmax(scores, 1), tf.argmax(labels, 1))
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        update = tf.train.AdamOptimizer(config["learning_rate"]).minimize(loss, global_step=step)

    final = tf.train.FinalOpsHook(accuracy, {x: data.validation.images, labels: data.validation.labels})
    hooks = [tf.train.StopAtStepHook(last_step=config["steps"]), final]
    began, own_steps = time.time(), 0
    with tf.train.MonitoredTrainingSession(task.server.target, task.is_chief, hooks=hooks) as session:
        while not session.should_stop():
            images, classes = data.train.next_batch(config["batch_size"])
            session.run(update, {x: images, labels: classes})
            own_steps += 1
    seconds = time.time() - began
    return {"steps": own_steps, "seconds": seconds, "accuracy": float(final.final_ops_values)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ps", type=int, default=1, help="parameter servers")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cpus", type=float, default=0.5, help="processors that Ray reserves for each task")
    parser.add_argument("--steps", type=int, default=600, help="of all workers together")
    parser.add_argument("--batch_size", type=int, default=100)
    parser.add_argument("--learning_rate", type=float, default=0.003)
    parser.add_argument("--target", type=float, default=0.88, help="validation accuracy; less is a failure")
    args = parser.parse_args()

    ray.init()  # the cluster at RAY_ADDRESS, or a new one on this machine
    config = {"steps": args.steps, "batch_size": args.batch_size, "learning_rate": args.learning_rate}
    needs = {"CPU": args.cpus}
    results = fleet_ray.run(
        train, config, ps=args.ps, workers=args.workers, resources_per_ps=needs, resources_per_worker=needs
    )
    for index, result in enumerate(results):
        print(f"Worker {index} took {result['steps']} steps in {result['seconds']:.1f} s.")
    reached = max(result["accuracy"] for result in results)
    print(f"Validation accuracy {reached:.4f} (target {args.target:g}).")
    return 0 if reached >= args.target else 1


if __name__ == "__main__":
    sys.exit(main())
