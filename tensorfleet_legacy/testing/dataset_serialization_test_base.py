"""The base of TensorFlow's tests of saved iterators: runs with and without a break are equal."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors, nest
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.ops.ragged.value import RaggedTensorValue
from tensorfleet_legacy.testing.test_util import TestCase

_KEPT = "iterator_ops"


def remove_variants(get_next_op: Any) -> Any:
    """A structure without the tensors of type variant, which a session does not fetch."""
    return nest.map_structure(
        lambda t: () if isinstance(t, Tensor) and t.dtype == dtypes.variant else t, get_next_op
    )


class DatasetSerializationTestBase(TestCase):
    """Saves an iterator in the middle of its dataset, goes on in another graph, and compares."""

    def setUp(self) -> None:
        """Makes the folder of the checkpoints."""
        super().setUp()
        self._folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self._folder, ignore_errors=True)

    def run_core_tests(
        self, ds_fn: Callable[[], Any], num_outputs: int, sparse_tensors: bool = False
    ) -> None:
        """All that can be asked of a dataset whose iterator can be saved."""
        for verify in (
            self.verify_unused_iterator,
            self.verify_fully_used_iterator,
            self.verify_exhausted_iterator,
            self.verify_multiple_breaks,
            self.verify_reset_restored_iterator,
        ):
            verify(ds_fn, num_outputs, sparse_tensors=sparse_tensors)

    def verify_unused_iterator(
        self,
        ds_fn: Callable[[], Any],
        num_outputs: int,
        sparse_tensors: bool = False,
        verify_exhausted: bool = True,
    ) -> None:
        """An iterator is saved before its first element."""
        self.verify_run_with_breaks(ds_fn, [0], num_outputs, sparse_tensors, verify_exhausted)

    def verify_fully_used_iterator(
        self, ds_fn: Callable[[], Any], num_outputs: int, sparse_tensors: bool = False
    ) -> None:
        """An iterator is saved behind its last element."""
        self.verify_run_with_breaks(ds_fn, [num_outputs], num_outputs, sparse_tensors)

    def verify_exhausted_iterator(
        self, ds_fn: Callable[[], Any], num_outputs: int, sparse_tensors: bool = False
    ) -> None:
        """An iterator that has said that it is at its end says so again when it is restored."""
        self.gen_outputs(ds_fn, [], num_outputs, sparse_tensors=sparse_tensors)
        self.assertEqual([], self.gen_outputs(ds_fn, [], 0, ckpt_saved=True, sparse_tensors=sparse_tensors))

    def verify_multiple_breaks(
        self,
        ds_fn: Callable[[], Any],
        num_outputs: int,
        num_breaks: int = 10,
        sparse_tensors: bool = False,
        verify_exhausted: bool = True,
    ) -> None:
        """An iterator is saved and restored several times."""
        breaks = self.gen_break_points(num_outputs, num_breaks)
        self.verify_run_with_breaks(ds_fn, breaks, num_outputs, sparse_tensors, verify_exhausted)

    def verify_reset_restored_iterator(
        self,
        ds_fn: Callable[[], Any],
        num_outputs: int,
        break_point: int | None = None,
        sparse_tensors: bool = False,
        verify_exhausted: bool = True,
    ) -> None:
        """An iterator that is initialized after it was restored begins anew."""
        expected = self.gen_outputs(
            ds_fn, [], num_outputs, sparse_tensors=sparse_tensors, verify_exhausted=verify_exhausted
        )
        half = break_point or num_outputs // 2
        self.gen_outputs(ds_fn, [], half, sparse_tensors=sparse_tensors, verify_exhausted=False)
        with find("Graph")().as_default() as graph:
            saver = self._import_meta_graph()
            init, get_next = self._get_iterator_ops_from_collection(ds_fn, sparse_tensors)
            with self.session(graph=graph) as sess:
                self._initialize(init, sess)
                self._restore(saver, sess)
                self._initialize(init, sess)
                result = self._elements(sess, remove_variants(get_next), num_outputs, verify_exhausted)
        self.match(expected, result)

    def verify_error_on_save(
        self,
        ds_fn: Callable[[], Any],
        num_outputs: int,
        error: type[Exception],
        break_point: int | None = None,
        sparse_tensors: bool = False,
    ) -> None:
        """An iterator in the middle of its dataset cannot be saved."""
        with find("Graph")().as_default() as graph:
            init, get_next, saver = self._build_graph(ds_fn, sparse_tensors)
            with self.session(graph=graph) as sess:
                self._initialize(init, sess)
                self._elements(sess, remove_variants(get_next), break_point or num_outputs // 2, False)
                with self.assertRaises(error):
                    self._save(sess, saver)

    def verify_run_with_breaks(
        self,
        ds_fn: Callable[[], Any],
        break_points: list[int],
        num_outputs: int,
        sparse_tensors: bool = False,
        verify_exhausted: bool = True,
    ) -> None:
        """A run that is broken off and taken up again gives what one without breaks gives."""
        options = {"sparse_tensors": sparse_tensors, "verify_exhausted": verify_exhausted}
        expected = self.gen_outputs(ds_fn, [], num_outputs, **options)
        self.match(expected, self.gen_outputs(ds_fn, break_points, num_outputs, **options))

    def gen_outputs(
        self,
        ds_fn: Callable[[], Any],
        break_points: list[int],
        num_outputs: int,
        ckpt_saved: bool = False,
        sparse_tensors: bool = False,
        verify_exhausted: bool = True,
        save_checkpoint_at_end: bool = True,
    ) -> list:
        """Elements of a dataset; at each of the breaks the iterator is saved and a new graph goes on with it."""
        outputs: list = []
        stops = [*break_points, num_outputs]
        for i, stop in enumerate(stops):
            last = i == len(stops) - 1
            with find("Graph")().as_default() as graph:
                if ckpt_saved:
                    saver = self._import_meta_graph()
                    init, get_next = self._get_iterator_ops_from_collection(ds_fn, sparse_tensors)
                else:
                    init, get_next, saver = self._build_graph(ds_fn, sparse_tensors)
                with self.session(graph=graph) as sess:
                    self._initialize(init, sess)
                    if ckpt_saved:
                        self._restore(saver, sess)
                    outputs += self._elements(
                        sess, remove_variants(get_next), stop - len(outputs), last and verify_exhausted
                    )
                    if not last or save_checkpoint_at_end:
                        self._save(sess, saver)
                        ckpt_saved = True
        return outputs

    def match(self, expected: Any, actual: Any) -> None:
        """Two structures of values are equal."""
        if isinstance(expected, np.ndarray):
            expected = expected.tolist()
        if isinstance(actual, np.ndarray):
            actual = actual.tolist()
        self.assertIs(type(expected), type(actual))
        if not isinstance(expected, RaggedTensorValue) and not nest.is_nested(expected):
            self.assertEqual(expected, actual)
            return
        if isinstance(expected, RaggedTensorValue):
            expected, actual = ([*v.nested_row_splits, v.flat_values] for v in (expected, actual))
        self.assertEqual(len(expected), len(actual))
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            self.match(expected[key], actual[key])

    def does_not_match(self, expected: Any, actual: Any) -> None:
        """Two structures of values differ."""
        with self.assertRaises(AssertionError):
            self.match(expected, actual)

    def gen_break_points(self, num_outputs: int, num_samples: int = 10) -> list[int]:
        """Breaks that are spread over a run."""
        return np.linspace(0, num_outputs, num_samples, dtype=int).tolist()

    def _elements(self, sess: Any, get_next: Any, count: int, to_the_end: bool) -> list:
        result = [sess.run(get_next) for _ in range(count)]
        if to_the_end:
            with self.assertRaises(errors.OutOfRangeError):
                sess.run(get_next)
        return result

    def _build_graph(self, ds_fn: Callable[[], Any], sparse_tensors: bool = False) -> tuple[Any, Any, Any]:
        iterator = ds_fn().make_initializable_iterator()
        saveable = find("data.experimental.make_saveable_from_iterator")(iterator)
        find("add_to_collection")(find("GraphKeys").SAVEABLE_OBJECTS, saveable)
        get_next = iterator.get_next()
        if sparse_tensors:
            get_next = SparseTensor(*get_next)
        for item in [iterator.initializer, *nest.flatten(get_next, expand_composites=True)]:
            find("add_to_collection")(_KEPT, item)
        return iterator.initializer, get_next, find("train.Saver")(allow_empty=True)

    def _get_iterator_ops_from_collection(
        self, ds_fn: Callable[[], Any], sparse_tensors: bool = False
    ) -> tuple[Any, Any]:
        init, *flat = find("get_collection")(_KEPT)
        if sparse_tensors:
            return init, SparseTensor(*flat)
        with find("Graph")().as_default():
            like = ds_fn().make_one_shot_iterator().get_next()
        return init, nest.pack_sequence_as(like, flat, expand_composites=True)

    def _get_output_types(self, ds_fn: Callable[[], Any]) -> Any:
        with find("Graph")().as_default():
            return ds_fn().output_types

    def _get_output_shapes(self, ds_fn: Callable[[], Any]) -> Any:
        with find("Graph")().as_default():
            return ds_fn().output_shapes

    def _get_output_classes(self, ds_fn: Callable[[], Any]) -> Any:
        with find("Graph")().as_default():
            return ds_fn().output_classes

    def _ckpt_path(self) -> str:
        return os.path.join(self._folder, "iterator")

    def _latest_ckpt(self) -> Any:
        return find("train.latest_checkpoint")(self._folder)

    def _save(self, sess: Any, saver: Any) -> None:
        saver.save(sess, self._ckpt_path())

    def _restore(self, saver: Any, sess: Any) -> None:
        sess.run(find("tables_initializer")())
        saver.restore(sess, self._latest_ckpt())

    def _initialize(self, init_op: Any, sess: Any) -> None:
        sess.run(find("global_variables_initializer")())
        sess.run(find("tables_initializer")())
        sess.run(init_op)

    def _import_meta_graph(self) -> Any:
        return find("train.import_meta_graph")(self._ckpt_path() + ".meta")

    def _delete_ckpt(self) -> None:
        for name in os.listdir(self._folder):
            os.remove(os.path.join(self._folder, name))
