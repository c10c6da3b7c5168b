"""Who will like which film? A wide sparse model over four parameter servers, on real ratings (MovieLens-100K).

    tensorfleet run --ps 4 --workers 2 examples/recommender.py
    tensorfleet run --ps 4 --workers 2 examples/recommender.py -- --data generated

    score(user, film) = vector of the user . vector of the film                     (embeddings)
                        + the mean weight of the crosses that are true              (wide, sparse)
                          such as "user 7 and comedy", "student and drama", "age 20-29 and film 42"

The tables are cut into four shards, one on each parameter server. A step looks up, sends and updates only the rows
that its ratings need, so that its cost does not depend on how large the tables are. What is reported is the AUC on
ratings that were kept back: how often a film that a user liked (4 or 5 stars) scores above one that was not.

The ratings come out of the package `recbole`, which ships them: it is fetched once (2 MB, without dependencies) and
the files are kept in ~/.cache/tensorfleet. `--data DIRECTORY` reads ml-100k.inter, ml-100k.item and ml-100k.user from
somewhere else; `--data generated` needs no network.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import tensorfleet as tf

TARGET = 0.74
BUCKETS = 200_000  # rows of the wide table: crosses are hashed into them


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", help="a directory, or `generated`; fetched once if not set")
    parser.add_argument("--epochs", type=int, default=2, help="of all workers together (2)")
    parser.add_argument(
        "--batch_size", type=int, default=1000, help="ratings in each step of a worker (1000)"
    )
    parser.add_argument("--dimensions", type=int, default=8, help="of the users' and films' vectors (8)")
    parser.add_argument("--learning_rate", type=float, default=0.15, help="of Adagrad (0.15)")
    parser.add_argument("--user", type=int, default=42, help="whom to recommend films to at the end (42)")
    if "TF_CONFIG" not in os.environ:
        parser.error(f"this is a task of a cluster: tensorfleet run --ps 4 --workers 2 {sys.argv[0]}")
    return parser.parse_args()


def fetch() -> Path:
    """The directory with MovieLens-100K, out of a package that ships it; an error says what to do without it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tensorfleet"
    kept = cache / "ml-100k"
    if kept.is_dir():
        return kept
    print("Fetching MovieLens-100K: 2 MB, once.")
    cache.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else ["uv", "pip"]
    with tempfile.TemporaryDirectory(dir=cache) as place:
        command = [*pip, "install", "--quiet", "--target", place, "--no-deps", "recbole==1.2.1"]
        try:
            subprocess.run(command, check=True, timeout=60, capture_output=True)
        except (OSError, subprocess.SubprocessError):
            sys.exit(
                "The ratings could not be fetched (pip install --no-deps recbole==1.2.1): use --data DIRECTORY, or --data generated"
            )
        with contextlib.suppress(OSError):  # another worker was faster
            (Path(place) / "recbole" / "dataset_example" / "ml-100k").rename(kept)
    return kept


def table(path: Path) -> list[list[str]]:
    """A file's rows without the heading."""
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]


@dataclass
class Ratings:
    """Who rated what, whether they liked it, and what is known of users and films; all as numbers."""

    user: np.ndarray
    film: np.ndarray
    liked: np.ndarray
    properties: np.ndarray  # of each user: age, gender, occupation
    genres: np.ndarray  # of each film, filled up with -1
    titles: dict[int, str]

    def part(self, rows: np.ndarray) -> Ratings:
        """Some of the ratings."""
        return replace(self, user=self.user[rows], film=self.film[rows], liked=self.liked[rows])

    def unseen_by(self, user: int) -> Ratings:
        """All films that a user has not rated, with that user."""
        film = np.setdiff1d(list(self.titles), self.film[self.user == user])
        return replace(self, user=np.full_like(film, user), film=film, liked=np.zeros(len(film), np.float32))

    def crosses(self) -> np.ndarray:
        """For each rating the rows of the wide table that it uses; -1 where there are fewer."""
        film, genres = self.film[:, None], self.genres[self.film]
        told = np.concatenate([self.user[:, None], self.properties[self.user]], axis=1)
        found = [film]
        for kind, value in enumerate(told.T[:, :, None]):
            found.append((value * 1_000_003 + genres * 7_919 + kind * 104_729) % BUCKETS)  # with each genre
            found[-1][genres < 0] = -1
            if kind:  # "user 7 and film 42" is what we want to find out: the others may help
                found.append((value * 15_485_863 + film * 32_452_843 + kind * 49_979_687) % BUCKETS)
        return np.concatenate(found, axis=1)


def read(directory: Path) -> Ratings:
    """The ratings in the files of MovieLens-100K."""
    names: dict[str, int] = {}  # a number for each word

    def number(word: str) -> int:
        return names.setdefault(word, len(names))

    rows = np.array([[int(r[0]), int(r[1]), float(r[2]) >= 4] for r in table(directory / "ml-100k.inter")])
    users = {
        int(r[0]): [int(r[1]) // 10, number(r[2]), number(r[3])] for r in table(directory / "ml-100k.user")
    }
    films = {int(r[0]): r for r in table(directory / "ml-100k.item")}
    properties = np.zeros([max(users) + 1, 3], int)
    properties[list(users)] = list(users.values())
    genres = np.full([max(films) + 1, 6], -1)
    for film, row in films.items():
        words = row[3].split()[:6]
        genres[film, : len(words)] = [number(word) for word in words]
    titles = {film: f"{row[1]} ({row[2]})" for film, row in films.items()}
    return Ratings(rows[:, 0], rows[:, 1], rows[:, 2].astype(np.float32), properties, genres, titles)


def generated(users: int = 300, films: int = 200, count: int = 20_000) -> Ratings:
    """Ratings of people who do not exist: each likes some genres, and some films are simply better."""
    random = np.random.RandomState(1)
    user, film = random.randint(0, users, count), random.randint(0, films, count)
    genre, taste, quality = random.randint(0, 6, films), random.randn(users, 6), random.randn(films)
    liked = taste[user, genre[film]] + quality[film] + 0.5 * random.randn(count) > 0
    titles = {i: f"film {i}" for i in range(films)}
    return Ratings(user, film, liked.astype(np.float32), np.zeros([users, 3], int), genre[:, None], titles)


class Model:
    """Scores of pairs of users and films, the loss against what users said, and a training step."""

    def __init__(self, ratings: Ratings, flags: argparse.Namespace, shards: int) -> None:
        self.user, self.film = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None])
        self.crosses = tf.sparse_placeholder(tf.int64, [None, None])
        self.liked = tf.placeholder(tf.float32, [None])
        # Each table becomes `shards` variables, which the device setter puts on one parameter server after the other.
        with tf.variable_scope("tables", partitioner=tf.fixed_size_partitioner(shards)):
            small, size = tf.random_normal_initializer(stddev=0.1), flags.dimensions
            users = tf.get_variable("users", [len(ratings.properties), size], initializer=small)
            films = tf.get_variable("films", [len(ratings.genres), size], initializer=small)
            wide = tf.get_variable("wide", [BUCKETS, 1], initializer=tf.zeros_initializer())
        self.tables = [users, films, wide]
        bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
        user = tf.nn.embedding_lookup(users, self.user, partition_strategy="div")
        film = tf.nn.embedding_lookup(films, self.film, partition_strategy="div")
        crossed = tf.nn.embedding_lookup_sparse(
            wide, self.crosses, None, partition_strategy="div", combiner="mean"
        )
        self.score = tf.reduce_sum(user * film, 1) + tf.squeeze(crossed, 1) + bias
        misfit = tf.nn.sigmoid_cross_entropy_with_logits(labels=self.liked, logits=self.score)
        self.loss = tf.reduce_mean(misfit)
        restraint = 0.01 * (tf.reduce_sum(user**2) + tf.reduce_sum(film**2))
        self.step = tf.train.get_or_create_global_step()
        optimizer = tf.train.AdagradOptimizer(flags.learning_rate)
        self.train = optimizer.minimize(tf.reduce_sum(misfit) + restraint, global_step=self.step)

    def feed(self, ratings: Ratings, crosses: np.ndarray) -> dict:
        there = crosses >= 0
        sparse = tf.SparseTensorValue(np.argwhere(there), crosses[there], crosses.shape)
        dense = {self.user: ratings.user, self.film: ratings.film, self.liked: ratings.liked}
        return {**dense, self.crosses: sparse}


def auc(liked: np.ndarray, score: np.ndarray) -> float:
    """How often something liked scores above something not liked: from the ranks of the liked ones."""
    order = np.argsort(score)
    rank = np.empty(len(score))
    rank[order] = np.arange(1, len(score) + 1)
    good = liked > 0.5
    return float((rank[good].sum() - good.sum() * (good.sum() + 1) / 2) / (good.sum() * (~good).sum()))


def main() -> int:
    flags = read_flags()
    told = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster, index = told.cluster_spec(), told.task_id
    server = tf.train.Server(cluster, told.task_type, index)
    if told.task_type == "ps":
        server.join()  # keeps its shards
        return 0

    ratings = generated() if flags.data == "generated" else read(Path(flags.data) if flags.data else fetch())
    order = np.random.RandomState(1).permutation(len(ratings.liked))
    workers, tenth = cluster.num_tasks("worker"), len(order) // 10
    test, mine = ratings.part(order[:tenth]), ratings.part(order[tenth + index :: workers])
    crosses = mine.crosses()
    tf.set_random_seed(1)
    with tf.device(
        tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)
    ):
        model = Model(ratings, flags, cluster.num_tasks("ps"))

    chief = index == 0
    if chief:
        print(f"{len(order)} ratings, {np.mean(ratings.liked):.0%} of them liked. Where the shards are:")
        for shards in model.tables:
            print(f"  {shards.name:14s}", *(f"{v.device[5:]}: {v.shape[0]} rows  " for v in shards))
    per_epoch = (len(order) - tenth) // flags.batch_size
    unseen = ratings.unseen_by(flags.user)
    final = tf.train.FinalOpsHook(model.score, model.feed(test, test.crosses()))
    advice = tf.train.FinalOpsHook(model.score, model.feed(unseen, unseen.crosses()))
    hooks = [tf.train.StopAtStepHook(last_step=flags.epochs * per_epoch), final, advice]
    random, began, due, loss = np.random.RandomState(index), time.time(), 0, 0.7
    with tf.train.MonitoredTrainingSession(server.target, is_chief=chief, hooks=hooks) as session:
        while not session.should_stop():
            rows = random.randint(0, len(mine.liked), flags.batch_size)
            feed = model.feed(mine.part(rows), crosses[rows])
            _, step, now = session.run([model.train, model.step, model.loss], feed)
            loss += 0.05 * (now - loss)
            if chief and step >= due:
                due = step + max(per_epoch // 4, 10)
                print(f"epoch {step / per_epoch:5.2f}   step {step:5d}   loss {loss:.4f}")
    if chief:
        print(f"What user {flags.user} has not rated and may like:")
        for i in np.argsort(-advice.final_ops_values)[:5]:
            print(f"  {advice.final_ops_values[i]:5.2f}  {ratings.titles[unseen.film[i]]}")
        reached, seconds = auc(test.liked, final.final_ops_values), time.time() - began
        print(
            f"Final test AUC {reached:.4f} after {flags.epochs} epochs in {seconds:.1f} s (target {TARGET})."
        )
        return 0 if reached >= TARGET else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
