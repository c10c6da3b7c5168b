"""`tf.contrib.learn.datasets`: Fisher's irises, and files that are fetched once."""

from __future__ import annotations

import functools
import os
import random
import shutil
import socket
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tensorfleet.base.naming import export, publish_replaceable
from tensorfleet_legacy.tutorials.input_data import Dataset, load_csv_with_header, load_mnist

_IRISES = Path(__file__).parent / "data" / "iris.csv"
_DOWNLOAD_TIMEOUT_SECONDS = 60
_TIMED_OUT = 110  # the error number of a connection that nobody answered


def _under(name: str) -> tuple[str, ...]:
    """The places of a name: beside the sets, and in the module that has it."""
    return tuple(
        f"contrib.learn.{path}datasets.{inner}{name}"
        for path in ("", "python.learn.")
        for inner in ("", "base.")
    )


@export(*_under("load_iris"))
def load_iris(data_path: str | None = None) -> Dataset:
    """150 irises of three kinds: lengths and widths of their sepals and petals, in centimeters; or a file like that."""
    return load_csv_with_header(str(data_path or _IRISES), np.int64, np.float64)


@export(*_under("retry")[1::2])
def retry(
    initial_delay: float,
    max_delay: float,
    factor: float = 2.0,
    jitter: float = 0.25,
    is_retriable: Callable[[Exception], bool] | None = None,
) -> Callable:
    """Decorator of a function that is called again when it fails, after longer and longer waits up to `max_delay`.

    Without `is_retriable` any error counts, and nobody waits.
    """
    if factor < 1:
        raise ValueError(f"factor must be >= 1; was {factor:f}")
    if jitter >= 1:
        raise ValueError(f"jitter must be < 1; was {jitter:f}")

    def delays() -> Iterator[float]:
        delay = initial_delay
        while delay <= max_delay:
            yield delay * random.uniform(1 - jitter, 1 + jitter)
            delay *= factor

    def decorate(fn: Callable) -> Callable:
        @functools.wraps(fn)
        def called(*args: Any, **kwargs: Any) -> Any:
            for delay in delays():
                try:
                    return fn(*args, **kwargs)
                except Exception as e:
                    if is_retriable is not None and not is_retriable(e):
                        raise
                    if is_retriable is not None:
                        time.sleep(delay)
            return fn(*args, **kwargs)

        return called

    return decorate


def _timed_out(error: Exception) -> bool:
    causes = (error, getattr(error, "reason", None))
    return any(isinstance(e, TimeoutError) or getattr(e, "errno", None) == _TIMED_OUT for e in causes)


@export(*_under("urlretrieve_with_retry")[1::2])
@retry(initial_delay=1.0, max_delay=16.0, is_retriable=_timed_out)
def urlretrieve_with_retry(url: str, filename: str | None = None) -> Any:
    """`urllib.request.urlretrieve`, tried up to six times while nobody answers for a minute."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(before or _DOWNLOAD_TIMEOUT_SECONDS)
    try:
        return urllib.request.urlretrieve(url, filename)
    finally:
        socket.setdefaulttimeout(before)


@export(*_under("maybe_download")[1::2])
def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """The path of a file in a folder, into which it is fetched when it is not there."""
    os.makedirs(work_directory, exist_ok=True)
    path = os.path.join(work_directory, filename)
    if not os.path.exists(path):
        fetched, _ = urlretrieve_with_retry(source_url)
        part = f"{path}.{os.getpid()}.part"  # one that is not whole must not be found next time
        shutil.copy(fetched, part)
        os.replace(part, path)
        print("Successfully downloaded", filename, os.path.getsize(path), "bytes.")
    return path


@export("contrib.learn.datasets.load_dataset", "contrib.learn.python.learn.datasets.load_dataset")
def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Any:
    """The set of a name: "iris" or "mnist"."""
    sets: dict[str, Callable] = {"iris": load_iris, "mnist": load_mnist}
    if name not in sets:
        raise ValueError(
            f"Name of dataset is not found: {name}. TensorFleet comes with {' and '.join(sets)}."
        )
    return sets[name]()


# Tests of scripts put clocks and answers of their own in place of these.
for _name in ("time", "urllib"):
    publish_replaceable(f"contrib.learn.python.learn.datasets.base.{_name}", sys.modules[__name__])
