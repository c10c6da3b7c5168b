"""The configuration of TensorBoard's projector."""

from tensorfleet.python.training.summary_io import SummaryWriterCache

import tensorfleet as tf


def test_embeddings_are_written_beside_the_events(tmp_path):
    projector = tf.contrib.tensorboard.plugins.projector
    config = projector.ProjectorConfig(model_checkpoint_path="model.ckpt")
    one = config.embeddings.add()
    one.tensor_name, one.metadata_path = "words:0", "words.tsv"
    one.sprite.image_path = "sprite.png"
    one.sprite.single_image_dim.extend([28, 28])
    with tf.summary.FileWriter(str(tmp_path)) as writer:
        projector.visualize_embeddings(writer, config)
    text = (tmp_path / "projector_config.pbtxt").read_text()
    assert 'tensor_name: "words:0"' in text and "single_image_dim: 28" in text
    assert text.startswith('model_checkpoint_path: "model.ckpt"')


def test_the_writers_of_before_have_their_place():
    assert SummaryWriterCache is tf.summary.FileWriterCache
