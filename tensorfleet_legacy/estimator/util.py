"""Converts the result of an input function to tensors of features and labels."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.data.dataset import Dataset
from tensorfleet.api.train.session_run_hook import SessionRunHook


class DatasetInitializerHook(SessionRunHook):
    """Starts the run through a dataset whenever a session was made."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def begin(self) -> None:
        """Looks for the operation while the graph can be changed."""
        self._initializer = self._iterator.initializer

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Starts at the beginning."""
        session.run(self._initializer)


def features_and_labels(result: Any) -> tuple[Any, Any, list]:
    """Features, labels (or None) and the hooks that the input needs: of a Dataset, or of tensors made by the function."""
    hooks: list = []
    if isinstance(result, Dataset):
        iterator = result.make_initializable_iterator()
        hooks.append(DatasetInitializerHook(iterator))
        result = iterator.get_next()
    if isinstance(result, (list, tuple)):
        if len(result) != 2:
            raise ValueError("input_fn should return (features, labels) as a len 2 tuple.")
        return result[0], result[1], hooks
    return result, None, hooks
