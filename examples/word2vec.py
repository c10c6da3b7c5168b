"""Words as vectors: word2vec with sampled softmax, on the documentation that comes with Python.

    python examples/word2vec.py --plot words.svg

Each word of a text is to foretell the words around it (skip-gram). A softmax over the whole vocabulary would cost
too much, so that a step compares the true word with a few that are drawn by chance: `tf.nn.sampled_softmax_loss`.
Only the rows of the words that occur in a step are read and updated. Afterwards words that are used alike have
similar vectors: the table shows the nearest neighbours of some, the plot a map of the most frequent ones.

How well it went is measured on a tenth of the pairs, which were not trained on: how often a word's true neighbour
scores above the neighbour of some other word (0.5 would be chance).
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

import tensorfleet as tf

TARGET = 0.65
SHOWN = ["class", "function", "string", "integer", "list", "exception", "import", "module", "when", "is"]


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--text", help="a text file to learn from instead")
    parser.add_argument("--steps", type=int, default=2500, help="training steps (2500)")
    parser.add_argument("--batch_size", type=int, default=512, help="pairs of words in each step (512)")
    parser.add_argument("--words", type=int, default=1000, help="size of the vocabulary (1000)")
    parser.add_argument("--dimensions", type=int, default=32, help="of the vectors (32)")
    parser.add_argument(
        "--sampled", type=int, default=64, help="words that each true one is compared with (64)"
    )
    parser.add_argument("--window", type=int, default=3, help="how far neighbours may be apart (3)")
    parser.add_argument("--plot", help="draw a map of words into this file (needs matplotlib)")
    return parser.parse_args()


def read_words(path: str | None) -> list[str]:
    """The words of a text, in order."""
    text = Path(path).read_text(encoding="utf-8") if path else "\n".join(topics.values())
    return re.findall(r"[a-z]+", text.lower())


def pairs(numbers: np.ndarray, window: int) -> np.ndarray:
    """Every word with each of the words near it, as numbers; 0 stands for rare words and is left out."""
    found = []
    for distance in range(1, window + 1):
        here, there = numbers[:-distance], numbers[distance:]
        found += [np.stack([here, there], 1), np.stack([there, here], 1)]
    together = np.concatenate(found)
    return together[(together > 0).all(1) & (together[:, 0] != together[:, 1])]


def thin_out(numbers: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """The text with fewer of its most frequent words ("the", "a", "is"), which tell little of their neighbours."""
    frequency = np.bincount(numbers) / len(numbers)
    return numbers[random.rand(len(numbers)) < np.sqrt(1e-3 / frequency[numbers])]


def true_above_chance(vectors: np.ndarray, outputs: np.ndarray, kept_back: np.ndarray) -> float:
    """How often a true neighbour scores above another pair's neighbour."""
    word, near = kept_back.T
    far = np.roll(near, 997)  # as frequent as the true ones, but of another place in the text
    true, chance = ((vectors[word] * outputs[other]).sum(1) for other in (near, far))
    return float((true > chance).mean())


def draw(vectors: np.ndarray, names: list[str], path: str) -> None:
    """A map: the two directions in which the vectors of frequent words differ most."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print('No plot: it needs matplotlib (pip install "tensorfleet[examples]").')
        return
    some = vectors[20:170] - vectors[20:170].mean(0)
    x, y = (some @ np.linalg.svd(some, full_matrices=False)[2][:2].T).T
    axes = (figure := Figure(figsize=(10, 8), layout="constrained")).subplots()
    axes.scatter(x, y, s=4)
    for name, left, up in zip(names[20:170], x, y, strict=True):
        axes.annotate(name, (left, up), fontsize="small")
    axes.set_axis_off()
    figure.savefig(path)
    print(f"The map is in {path}.")


def main() -> int:
    flags = read_flags()
    tf.set_random_seed(1)
    random, began = np.random.RandomState(1), time.time()
    words = read_words(flags.text)
    names = ["?", *(word for word, _ in Counter(words).most_common(flags.words - 1))]
    number = {name: i for i, name in enumerate(names)}
    text = np.array([number.get(word, 0) for word in words])
    found = random.permutation(pairs(thin_out(text, random), flags.window))
    kept_back, train_pairs = np.split(found, [len(found) // 10])
    print(f"{len(words)} words, {len(names)} of them different ones that count, {len(train_pairs)} pairs.")

    inputs = tf.placeholder(tf.int64, [flags.batch_size])
    labels = tf.placeholder(tf.int64, [flags.batch_size, 1])
    shape = [len(names), flags.dimensions]
    vectors = tf.get_variable("vectors", shape, initializer=tf.random_uniform_initializer(-0.2, 0.2))
    outputs = tf.get_variable("outputs", shape, initializer=tf.zeros_initializer())
    biases = tf.get_variable("biases", [len(names)], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(
        tf.nn.sampled_softmax_loss(
            weights=outputs,
            biases=biases,
            labels=labels,
            inputs=tf.nn.embedding_lookup(vectors, inputs),
            num_sampled=flags.sampled,
            num_classes=len(names),
        )
    )
    # A large rate: the loss is a mean, of which each word's row gets its small part.
    train = tf.train.GradientDescentOptimizer(flags.batch_size / 40).minimize(loss)
    unit = tf.nn.l2_normalize(vectors, 1)
    asked = tf.placeholder(tf.int64, [None])
    _, nearest = tf.nn.top_k(tf.matmul(tf.gather(unit, asked), unit, transpose_b=True), k=6)

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        mean = 0.0
        for step in range(1, flags.steps + 1):
            batch = train_pairs[random.randint(0, len(train_pairs), flags.batch_size)]
            _, cost = sess.run([train, loss], {inputs: batch[:, 0], labels: batch[:, 1:]})
            mean += cost / 500
            if step % 500 == 0:
                print(f"step {step:5d}   mean loss {mean:.4f}")
                mean = 0.0
        shown = [word for word in SHOWN if word in number] or names[1:11]
        neighbours = sess.run(nearest, {asked: [number[word] for word in shown]})
        final_vectors, final_outputs, directions = sess.run([vectors, outputs, unit])
    print("word          nearest neighbours")
    for word, row in zip(shown, neighbours, strict=True):
        print(f"{word:12s}  {', '.join(names[i] for i in row[1:])}")
    if flags.plot:
        draw(directions, names, flags.plot)
    reached, seconds = true_above_chance(final_vectors, final_outputs, kept_back), time.time() - began
    print(f"Final share of true pairs above chance {reached:.4f} in {seconds:.1f} s (target {TARGET}).")
    return 0 if reached >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
