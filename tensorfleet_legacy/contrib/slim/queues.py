"""`slim.queues`: queue runners for the time of a block; and small record files of images, as tests read them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tensorfleet.base.naming import export, find, publish

_STOP_SECONDS = 120
_QUEUES = ("contrib.slim.queues", "contrib.slim.python.slim.queues")
_FILES = "contrib.slim.python.slim.data.test_utils"


@export(*(f"{place}.NestedQueueRunnerError" for place in _QUEUES))
class NestedQueueRunnerError(Exception):
    """`QueueRunners` was used inside of itself."""


_filled = threading.local()


@export(*(f"{place}.QueueRunners" for place in _QUEUES))
@contextmanager
def queue_runners(session: Any) -> Iterator[None]:
    """Around what uses a graph's queues: their threads run, and have ended behind it."""
    if getattr(_filled, "now", False):
        raise NestedQueueRunnerError("QueueRunners cannot be nested: leave out the inner one.")
    coordinator = find("train.Coordinator")()
    _filled.now = True
    try:
        threads = find("train.start_queue_runners")(session, coordinator)
        yield
    finally:
        _filled.now = False
        coordinator.request_stop()
    coordinator.join(threads, stop_grace_period_secs=_STOP_SECONDS)


publish(
    find("contrib.slim.prefetch_queue.prefetch_queue"),
    "contrib.slim.python.slim.data.prefetch_queue.prefetch_queue",
)


@export(f"{_FILES}.generate_image")
def generate_image(image_shape: Any, image_format: str = "jpeg", label: int = 0) -> tuple[np.ndarray, bytes]:
    """A random image, and an example that holds it encoded, with its format and a label."""
    image = np.random.randint(0, 256, image_shape).astype(np.uint8)
    if image_format == "raw":
        encoded = image.tobytes()
    else:
        with find("Graph")().as_default(), find("Session")() as session:
            encode = find("image.encode_jpeg" if image_format in ("jpeg", "jpg") else "image.encode_png")
            encoded = session.run(encode(image))
    train = {
        name: find(f"train.{name}") for name in ("Feature", "BytesList", "Int64List", "Features", "Example")
    }

    def stored(*values: bytes) -> Any:
        return train["Feature"](bytes_list=train["BytesList"](value=values))

    features = {
        "image/encoded": stored(encoded),
        "image/format": stored(image_format.encode()),
        "image/class/label": train["Feature"](int64_list=train["Int64List"](value=[label])),
    }
    example = train["Example"](features=train["Features"](feature=features))
    return image, example.SerializeToString()


@export(f"{_FILES}.create_tfrecord_files")
def create_tfrecord_files(output_dir: str, num_files: int = 3, num_records_per_file: int = 10) -> list[str]:
    """Files of random images; their paths."""
    paths = []
    for i in range(num_files):
        paths.append(os.path.join(output_dir, f"flowers.tfrecord-{i}-of-{num_files}"))
        with find("io.TFRecordWriter")(paths[-1]) as writer:
            for _ in range(num_records_per_file):
                writer.write(generate_image((10, 10, 3))[1])
    return paths
