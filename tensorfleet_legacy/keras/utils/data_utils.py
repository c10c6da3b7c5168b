"""`tf.keras.utils`: batches of a `Sequence` or a generator, made ahead by threads or processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import queue
import random
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np

_START_TIMEOUT_SECONDS = 60.0  # for a process to begin
_pools: list[Any] = []  # those of processes, which `terminate_keras_multiprocessing_pools` ends


class SequenceEnqueuer:
    """Base: makes items ahead in the background. `start`, then take them from `get()`, then `stop`."""

    def __init__(self, sequence: Any, use_multiprocessing: bool = False) -> None:
        self.sequence, self.use_multiprocessing = sequence, use_multiprocessing
        self.workers = 0
        self.queue: Any = None
        self.stop_signal: threading.Event | None = None
        self.run_thread: threading.Thread | None = None
        self._pool: Executor | None = None

    def is_running(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self.stop_signal is not None and not self.stop_signal.is_set()

    def start(self, workers: int = 1, max_queue_size: int = 10) -> None:
        """Begins, with so many threads or processes, at most so many items ahead."""
        self.workers = workers
        self.queue = queue.Queue(max_queue_size)
        self.stop_signal = threading.Event()
        self._pool = self._new_pool(max(1, workers))
        self.run_thread = threading.Thread(target=self._run, daemon=True)
        self.run_thread.start()

    def _new_pool(self, workers: int) -> Executor:
        if not self.use_multiprocessing:
            return ThreadPoolExecutor(workers)
        context = multiprocessing.get_context("fork")
        result = ProcessPoolExecutor(
            workers, mp_context=context, initializer=_seed, initargs=(self._seeds(),)
        )
        with warnings.catch_warnings():
            # JAX warns of forks; what the processes run is the sequence alone, and no graph.
            warnings.simplefilter("ignore")
            result.submit(int).result(_START_TIMEOUT_SECONDS)
        _pools.append(result)
        return result

    def _seeds(self) -> int | None:
        return None

    def _put(self, item: Any) -> bool:
        """Puts something into the queue; False when it was stopped meanwhile."""
        while self.is_running():
            with contextlib.suppress(queue.Full):
                self.queue.put(item, timeout=0.1)
                return True
        return False

    def _run(self) -> None:
        raise TypeError(f"{type(self).__name__} is a base: use OrderedEnqueuer or GeneratorEnqueuer.")

    def stop(self, timeout: float | None = None) -> None:
        """Ends the work in the background."""
        if self.stop_signal is None or self.run_thread is None or self._pool is None:
            return
        self.stop_signal.set()
        with contextlib.suppress(queue.Empty):
            while True:
                self.queue.get_nowait()
        self.run_thread.join(timeout)
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._pool in _pools:
            _pools.remove(self._pool)

    def get(self) -> Iterator:
        """The items, in order."""
        while self.is_running():
            try:
                waiting = self.queue.get(timeout=5)
            except queue.Empty:
                continue
            if waiting is None:
                return
            try:
                item = waiting()
            except StopIteration:
                return
            except Exception:
                self.stop()
                raise
            if item is not None:
                yield item


def _seed(value: int | None) -> None:
    """Initializes a new process: random numbers of its own, and Ctrl-C left to its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if value is not None:
        np.random.seed(value + multiprocessing.current_process()._identity[-1])


_shared: dict[int, Any] = {}  # sequences that forked processes find by number


def _item_of(number: int, index: int) -> Any:
    return _shared[number][index]


class OrderedEnqueuer(SequenceEnqueuer):
    """The batches of a `Sequence` over and over, epoch by epoch, in the order of their indices or shuffled."""

    def __init__(self, sequence: Any, use_multiprocessing: bool = False, shuffle: bool = False) -> None:
        super().__init__(sequence, use_multiprocessing)
        self.shuffle = shuffle
        _shared[id(self)] = sequence

    def _run(self) -> None:
        assert self._pool is not None
        while self.is_running():
            order = list(range(len(self.sequence)))
            if self.shuffle:
                random.shuffle(order)
            results: list = []
            for i in order:
                results.append(self._pool.submit(_item_of, id(self), i))
                if not self._put(results[-1].result):
                    return
            for item in results:  # all of an epoch are there before it ends
                item.exception()
            self.sequence.on_epoch_end()
            if self.use_multiprocessing and self.is_running():
                self._pool.shutdown(wait=False)
                self._pool = self._new_pool(max(1, self.workers))  # processes that see the changed sequence

    def stop(self, timeout: float | None = None) -> None:
        """Ends the work in the background."""
        super().stop(timeout)
        _shared.pop(id(self), None)


class GeneratorEnqueuer(SequenceEnqueuer):
    """The items of a generator."""

    def __init__(
        self, sequence: Any, use_multiprocessing: bool = False, random_seed: int | None = None
    ) -> None:
        # A generator is in one process only: it is drawn from by a thread of this one.
        super().__init__(sequence, use_multiprocessing=False)
        self.random_seed = random_seed
        self._drawing = threading.Lock()

    def _next(self) -> Any:
        with self._drawing:
            return next(self.sequence)

    def _run(self) -> None:
        while self.is_running():
            try:
                item = self._next()
            except StopIteration:
                self._put(None)
                return
            except Exception as error:
                self._put(_raiser(error))
                return
            if not self._put(lambda item=item: item):
                return


def _raiser(error: Exception) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


def terminate_keras_multiprocessing_pools(grace_period: float = 0.1, use_sigkill: bool = False) -> None:
    """Ends the processes that still make batches."""
    for pool in list(_pools):
        processes = list((pool._processes or {}).values())
        for process in processes:
            process.terminate()
        time.sleep(grace_period)
        for process in processes:
            if use_sigkill and process.is_alive():
                process.kill()
        pool.shutdown(wait=False, cancel_futures=True)
        _pools.remove(pool)
