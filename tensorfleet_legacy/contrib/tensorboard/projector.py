"""`tf.contrib.tensorboard.plugins.projector`: tells TensorBoard which variables are embeddings."""

from __future__ import annotations

import os
from typing import Any

from tensorfleet.base.files import GFile
from tensorfleet.base.naming import export, publish_lazily

_FILE = "projector_config.pbtxt"
_MODULE = "contrib.tensorboard.plugins.projector"
# Each message of TensorBoard's plugin: its fields by number, with their kind; a * is for many.
_MESSAGES = {
    "SpriteMetadata": {1: ("image_path", "string"), 2: ("single_image_dim", "uint32*")},
    "EmbeddingInfo": {
        1: ("tensor_name", "string"),
        2: ("metadata_path", "string"),
        3: ("bookmarks_path", "string"),
        4: ("tensor_shape", "uint32*"),
        5: ("sprite", "SpriteMetadata"),
        6: ("tensor_path", "string"),
    },
    "ProjectorConfig": {
        1: ("model_checkpoint_path", "string"),
        2: ("embeddings", "EmbeddingInfo*"),
        3: ("model_checkpoint_dir", "string"),
    },
}
_KINDS = {"string": 9, "uint32": 13}
_MESSAGE = 11


def _load(name: str) -> Any:
    """The class of one of the messages."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="tensorfleet/projector.proto", package="tensorfleet.projector"
    )
    for message, fields in _MESSAGES.items():
        one = file.message_type.add(name=message)
        for number, (field, kind) in fields.items():
            plain = kind.rstrip("*")
            output = one.field.add(name=field, number=number, label=3 if kind.endswith("*") else 1)
            output.type = _KINDS.get(plain, _MESSAGE)  # type: ignore[assignment]
            if plain not in _KINDS:
                output.type_name = f".tensorfleet.projector.{plain}"
    pool = descriptor_pool.Default()
    pool.Add(file)
    result = pool.FindMessageTypeByName(f"tensorfleet.projector.{name.rpartition('.')[2]}")
    return message_factory.GetMessageClass(result)


publish_lazily(_load, *(f"{_MODULE}.{name}" for name in _MESSAGES))


@export(f"{_MODULE}.visualize_embeddings")
def visualize_embeddings(summary_writer: Any, config: Any) -> None:
    """Writes `config`, a `ProjectorConfig`, where TensorBoard looks for it: beside the events of `summary_writer`."""
    from google.protobuf import text_format

    logdir = summary_writer.get_logdir()
    if logdir is None:
        raise ValueError("Summary writer must have a logdir")
    os.makedirs(logdir, exist_ok=True)
    with GFile(os.path.join(logdir, _FILE), "w") as file:
        file.write(text_format.MessageToString(config))
