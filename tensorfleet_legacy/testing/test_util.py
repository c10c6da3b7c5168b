"""`tf.test.TestCase` and what goes with it. Loaded when first used, since unittest takes time to import."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from absl.testing import absltest

from tensorfleet.base.naming import find
from tensorfleet.base.platform.app import run
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.scopes import get_default_graph, get_default_session, reset_default_graph
from tensorfleet.session.session import Session
from tensorfleet_legacy.testing.benchmark import benchmarks_main
from tensorfleet_legacy.testing.test_util_assertions import Assertions

_SEED = 87654321
_folder: str | None = None


class TestCase(Assertions):
    """A test with a fresh default graph, fixed seeds, sessions, and assertions about tensors."""

    def __init__(self, methodName: str = "runTest") -> None:
        super().__init__(methodName)
        self._threads: list[CheckedThread] = []
        self._tempdir: str | None = None
        self._cached: tuple[Session, Any, bool] | None = None

    def setUp(self) -> None:
        """Empties the default graph and sets every seed."""
        super().setUp()
        self._close_cached()
        random.seed(_SEED)
        np.random.seed(_SEED)
        reset_default_graph()
        get_default_graph().seed = _SEED

    def tearDown(self) -> None:
        """Fails when a `checkedThread` was not joined, or its target raised."""
        for thread in self._threads:
            thread.check_termination()
        self._close_cached()
        super().tearDown()

    def _close_cached(self) -> None:
        if self._cached is not None:
            self._cached[0].close()
            self._cached = None

    @contextmanager
    def captureWritesToStream(self, stream: Any) -> Iterator[CapturedWrites]:
        """Inside the block what is written to a stream, such as `sys.stderr`, goes to `contents()` of what it gives."""
        stream.flush()
        descriptor, path = tempfile.mkstemp(dir=self.get_temp_dir())
        kept = os.dup(stream.fileno())
        os.dup2(descriptor, stream.fileno())
        try:
            yield CapturedWrites(path)
        finally:
            stream.flush()
            os.dup2(kept, stream.fileno())
            os.close(kept)
            os.close(descriptor)

    def get_temp_dir(self) -> str:
        """A directory for this test's files, the same at every call."""
        if self._tempdir is None:
            self._tempdir = tempfile.mkdtemp(dir=get_temp_dir())
        return self._tempdir

    @contextmanager
    def session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Session]:
        """A new session on the graph, as the default; closed at the end."""
        with _session(graph, config, force_gpu) as session, _placed(session, use_gpu, force_gpu):
            yield session

    @contextmanager
    def cached_session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Session]:
        """The session of this test, made at the first call, with its variables kept between calls."""
        if self._cached is None:
            self._cached = (_session(graph, config, force_gpu), config, force_gpu)
        session, made_with, forced = self._cached
        if graph is not None and session.graph is not graph:
            raise ValueError(
                "The graph used to get the cached session is different than the one it was made with."
            )
        if config is not None and made_with is not config:
            raise ValueError(
                "The config used to get the cached session is different than the one it was made with."
            )
        if forced is not force_gpu:
            raise ValueError(
                "The force_gpu value used to get the cached session is different than the one it was made with."
            )
        with session.graph.as_default(), session.as_default(), _placed(session, use_gpu, force_gpu):
            yield session

    def test_session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> AbstractContextManager[Session]:
        """`cached_session` when no graph is given, else `session`."""
        if self.id().endswith(".test_session"):
            self.skipTest("Not a test.")
        make = self.cached_session if graph is None else self.session
        return make(graph, config, use_gpu, force_gpu)

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors, run in the default session or in one for this call."""
        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with self.test_session() as session:
            return session.run(tensors)

    def checkedThread(
        self, target: Callable, args: tuple | None = None, kwargs: dict | None = None
    ) -> CheckedThread:
        """A thread whose errors fail the test; it must be joined."""
        thread = CheckedThread(self, target, args, kwargs)
        self._threads.append(thread)
        return thread


def _session(graph: Graph | None, config: Any, force_gpu: bool) -> Session:
    """A session as tests have it: what has no kernel for the device asked for runs elsewhere."""
    if config is None:
        config = find("ConfigProto")(allow_soft_placement=not force_gpu)
    return Session(graph=graph, config=config)


def _placed(session: Session, use_gpu: bool, force_gpu: bool) -> AbstractContextManager:
    """Where the operations made inside a test's session go: to the CPU, unless the test wants a GPU."""
    if force_gpu:
        return session.graph.device("/device:GPU:0")
    return nullcontext() if use_gpu else session.graph.device("/device:CPU:0")


# A context for tests, not a test, whatever a collector makes of its name.
TestCase.test_session.__test__ = False  # type: ignore[attr-defined]


class CheckedThread:
    """A thread that hands what its target raised to the test that joins it."""

    def __init__(self, case: TestCase, target: Callable, args: tuple | None, kwargs: dict | None) -> None:
        self._case = case
        self._target = target
        self._args = args or ()
        self._kwargs = kwargs or {}
        self._thread = threading.Thread(target=self._protected)
        self._error: Exception | None = None
        self._joined = False

    def _protected(self) -> None:
        try:
            self._target(*self._args, **self._kwargs)
        except Exception as e:
            self._error = e

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def join(self) -> None:
        """Waits for the end, and fails the test if the target raised."""
        self._joined = True
        self._thread.join()
        if self._error is not None:
            self._case.fail(f"Error in checkedThread: {self._error}")

    def is_alive(self) -> bool:
        """Whether it is running."""
        return self._thread.is_alive()

    def check_termination(self) -> None:
        """Fails the test when the thread was started and never joined."""
        if self._joined or self._thread.ident is None:
            return
        if self.is_alive():
            self._case.fail("A checkedThread was still running at the end of its test; join it.")
        self._case.fail("A checkedThread was not joined by its test.")


class CapturedWrites:
    """The text that was written to a stream while it was captured."""

    def __init__(self, path: str) -> None:
        self._path = path

    def contents(self) -> str:
        """All of it, as text."""
        with open(self._path, encoding="utf-8") as f:
            return f.read()


class StubOutForTesting:
    """Replaces attributes for the time of a test, and puts the originals back."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> StubOutForTesting:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.CleanUp()

    def CleanUp(self) -> None:
        """Puts everything back."""
        self.UnsetAll()

    def Set(self, parent: Any, child_name: str, new_child: Any) -> None:
        """Replaces an attribute of an object, module or class."""
        self._replaced.append((parent, child_name, vars(parent).get(child_name, getattr(parent, child_name))))
        setattr(parent, child_name, new_child)

    def SmartSet(self, obj: Any, attr_name: str, new_attr: Any) -> None:
        """Replaces an attribute where it is defined; AttributeError when there is none."""
        owners = [obj, *getattr(obj if isinstance(obj, type) else type(obj), "__mro__", ())]
        for owner in owners:
            if attr_name in getattr(owner, "__dict__", {}):
                self.Set(owner, attr_name, new_attr)
                return
        raise AttributeError(f"{attr_name} is not an attribute of {obj}.")

    def UnsetAll(self) -> None:
        """Puts everything back, the last replaced first."""
        while self._replaced:
            parent, name, value = self._replaced.pop()
            setattr(parent, name, value)

    def SmartUnsetAll(self) -> None:
        """Puts everything back."""
        self.UnsetAll()


def get_temp_dir() -> str:
    """A directory for the files of this process's tests."""
    global _folder
    if _folder is None:
        _folder = tempfile.mkdtemp(prefix=os.path.basename(sys.argv[0] or "test"))
    return _folder


def test_src_dir_path(relative_path: str) -> str:
    """A path in the tree of sources that the test lies in; without one, relative to this package's parent directory."""
    if "TEST_SRCDIR" in os.environ:
        return os.path.join(os.environ["TEST_SRCDIR"], "org_tensorflow/tensorflow", relative_path)
    for folder in Path(sys.argv[0]).resolve().parents:
        if folder.name == "tensorflow":
            return str(folder / relative_path)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.join(root, relative_path)


test_src_dir_path.__test__ = False  # type: ignore[attr-defined]


def assert_equal_graph_def(
    actual: Any, expected: Any, checkpoint_v2: bool = False, hash_table_shared_name: bool = False
) -> None:
    """AssertionError when two GraphDefs differ in their nodes, in whatever order these are listed."""
    for graph_def in (actual, expected):
        if not hasattr(graph_def, "node"):
            raise TypeError(f"Expected tf.GraphDef, got {type(graph_def).__name__}")
        for node in graph_def.node if hash_table_shared_name else ():
            if node.op == "HashTableV2" and "hash_table_" in str(node.attr["shared_name"].s):
                del node.attr["shared_name"]
    one, two = ({n.name: n for n in g.node} for g in (actual, expected))
    if one.keys() != two.keys():
        unexpected, missing = sorted(one.keys() - two.keys()), sorted(two.keys() - one.keys())
        what = "Found unexpected" if unexpected else "Did not find expected"
        named = (unexpected or missing)[-1]
        raise AssertionError(
            f"{what} node '{{{{node {named}}}}}'. Unexpected: {unexpected}, missing: {missing}."
        )
    for name, node in one.items():
        if node != two[name]:
            raise AssertionError(f"Node {name!r} differs:\n{node}\nexpected:\n{two[name]}")


def main(argv: list[str] | None = None) -> None:
    """Runs the tests of the calling script, or its benchmarks when it was called with `--benchmarks=PATTERN`."""

    def tests(args: list[str]) -> None:
        absltest.main(argv=args)

    benchmarks_main(lambda: run(main=tests, argv=argv), argv)
