"""Models as files and as text: configurations, weights, and whole models."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from tensorfleet_legacy.keras import backend as state

_HDF5 = (".h5", ".hdf5", ".keras")


class Saved:
    """The half of a model that is saved."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    # -- as text -------------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """The layers and how they are connected."""
        from tensorfleet_legacy.keras.saving.model_config import config_of

        return config_of(self)

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any:
        """A model from what `get_config` gave, with new weights."""
        from tensorfleet_legacy.keras.saving.model_config import built_from

        return built_from(cls, config, custom_objects)

    def _described(self) -> dict[str, Any]:
        config = {"class_name": type(self).__name__, "config": self.get_config()}
        return {**config, "keras_version": state.VERSION, "backend": "tensorflow"}

    def to_json(self, **kwargs: Any) -> str:
        """The layers and how they are connected, as JSON."""
        return json.dumps(self._described(), default=plain, **kwargs)

    def to_yaml(self, **kwargs: Any) -> str:
        """The layers and how they are connected, as YAML."""
        import yaml

        return yaml.dump(json.loads(self.to_json()), **kwargs)

    # -- weights -------------------------------------------------------------------------------------

    def save_weights(self, filepath: Any, overwrite: bool = True, save_format: str | None = None) -> None:
        """Writes the weights: as a checkpoint, or as HDF5 for a name that ends like one (or `save_format="h5"`)."""
        path = str(filepath)
        if is_hdf5(path, save_format):
            from tensorfleet_legacy.keras.saving.hdf5_format import save_weights

            save_weights(self, path, overwrite)
            return
        if not self.built:
            raise ValueError(
                "Unable to save weights of a model that has not created its variables yet. Call it on data, or fit it, "
                "first."
            )
        from tensorfleet.api.train.checkpoint_state import write_state

        session = state.get_session()
        with session.graph.as_default():
            saver = self.__dict__.get("_checkpoint")
            if saver is None:
                saver = self.__dict__["_checkpoint"] = _rooted(self)
            saver.write(path, session)
        write_state(os.path.dirname(os.path.abspath(path)), path, [path], relative=True)

    def load_weights(self, filepath: Any, by_name: bool = False) -> Any:
        """Reads weights that `save_weights` wrote: layer by layer, or those of layers of the same name."""
        path = str(filepath)
        if os.path.exists(f"{path}.index"):
            return self._load_checkpoint(path, by_name)
        if not os.path.exists(path):
            raise OSError(f"Unable to open file: {path} is neither a checkpoint nor an HDF5 file.")
        from tensorfleet_legacy.keras.saving.hdf5_format import load_weights

        load_weights(self, path, by_name)
        return None

    def _load_checkpoint(self, path: str, by_name: bool) -> Any:
        if by_name:
            raise ValueError(
                "Weights may only be loaded based on topology into Models when loading TensorFlow-formatted weights (got "
                "by_name=True to load_weights)."
            )
        if not self.built:
            raise ValueError(
                "Unable to load weights into a model that has not created its variables yet. Call it on data, or build "
                "it, first."
            )
        from tensorfleet.api.train.checkpoint_loading import status_for
        from tensorfleet.api.train.checkpoint_reader import NewCheckpointReader

        keys = NewCheckpointReader(path).get_variable_to_shape_map()
        if self._options is not None and self.outputs and any(k.startswith("optimizer/") for k in keys):
            self._fetches("train")  # makes the optimizer's variables, to restore them too
        session = state.get_session()
        with session.graph.as_default():
            status: Any = status_for(_rooted(self), path)
            if not status._found():
                raise ValueError(f"Nothing in the checkpoint {path} belongs to the model {self.name}.")
            status.run_restore_ops(session)
        return status

    def save(
        self,
        filepath: Any,
        overwrite: bool = True,
        include_optimizer: bool = True,
        save_format: str | None = None,
        signatures: Any = None,
    ) -> None:
        """Writes the layers, the weights and how the model is trained to one HDF5 file, or to a SavedModel if asked for."""
        from tensorfleet_legacy.keras.saving.hdf5_format import save_model

        save_model(self, filepath, overwrite, include_optimizer, save_format, signatures)

    def _checkpoint_dependencies(self) -> Any:
        """The contents of object checkpoints: layers with weights by position, attributes, the optimizer."""
        with_weights = 0
        for place, layer in enumerate(self.layers if self._layers else ()):
            if layer.weights:
                yield f"layer_with_weights-{with_weights}", layer
                with_weights += 1
            yield f"layer-{place}", layer
        from tensorfleet.api.train.object_graph import attributes

        yield from ((k, v) for k, v in attributes(self) if k != "history")


def is_hdf5(path: str, save_format: str | None) -> bool:
    """Whether a file is written as HDF5: as its name or `save_format` says."""
    if save_format is None:
        return path.endswith(_HDF5)
    if save_format.lower() in ("tf", "tensorflow"):
        return False
    if save_format.lower() in ("h5", "hdf5", "keras"):
        return True
    raise ValueError(f"Unknown format {save_format!r}. Was expecting one of {{'tf', 'h5'}}.")


def _rooted(model: Any) -> Any:
    """A checkpoint whose root is the model itself."""
    from tensorfleet.api.train.checkpoint import Checkpoint

    class Rooted(Checkpoint):
        def _checkpoint_dependencies(self) -> Any:
            yield from model._checkpoint_dependencies()

    return Rooted()


def plain(value: Any) -> Any:
    """A value as JSON can write it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "as_list"):
        return value.as_list()
    if hasattr(value, "name") and not callable(value):
        return value.name
    if hasattr(value, "get_config"):
        return {"class_name": type(value).__name__, "config": value.get_config()}
    if hasattr(value, "__name__"):
        return value.__name__
    raise TypeError(f"Not JSON serializable: {value}")
