"""`tf.train.Coordinator`: threads that stop together, with the first error of any of them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from tensorfleet.base import errors, logging
from tensorfleet.base.naming import export
from tensorfleet.base.platform import notice
from tensorfleet.base.properties import readonly

#: An exception, or the tuple of `sys.exc_info()`.
StopReason: TypeAlias = "BaseException | tuple[Any, Any, Any]"

# How often to look whether threads ended on their own, in seconds.
_POLL_SECONDS = 0.05


@export("train.Coordinator")
class Coordinator:
    """Stops a set of threads together.

    Threads ask `should_stop()` now and then; any of them may call `request_stop()`, with an exception if
    something went wrong. `join()` waits until all have ended and raises the first exception reported, except
    those of `clean_stop_exception_types` (by default `tf.errors.OutOfRangeError`), which only mean the end.
    """

    def __init__(self, clean_stop_exception_types: Iterable[type[BaseException]] | None = None) -> None:
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (errors.OutOfRangeError,)
        self._clean_stop_exception_types = tuple(clean_stop_exception_types)
        self._lock = threading.Lock()
        self._stop_event = threading.Event()
        self._requested_error: BaseException | None = None
        self._joined = False
        self._registered_threads: set[threading.Thread] = set()

    def _reported(self, ex: StopReason | None) -> BaseException | None:
        """The exception in an argument of `request_stop`; None when it means a clean stop."""
        if isinstance(ex, tuple):
            kind, value, trace = ex
            error = value if isinstance(value, BaseException) else kind(value)
            # An exception that was raised has its traceback; one that was only made gets the caller's.
            if trace is not None and error.__traceback__ is None:
                error = error.with_traceback(trace)
        elif ex is None or isinstance(ex, BaseException):
            error = ex
        else:
            error = ValueError(f"request_stop takes an exception or sys.exc_info(), not {ex!r}.")
        return None if isinstance(error, self._clean_stop_exception_types) else error

    def request_stop(self, ex: StopReason | None = None) -> None:
        """Asks all threads to stop. `ex`, an exception or `sys.exc_info()`, will be raised by `join`."""
        error = self._reported(ex)
        with self._lock:
            # Nobody joins again, so that an error would be lost: it is raised here.
            if self._joined:
                if error is not None:
                    raise error
                return
            # The first reason counts; the others usually follow from it.
            if not self._stop_event.is_set():
                if error is not None:
                    logging.info("Error reported to Coordinator: %s, %s", type(error).__name__, error)
                    self._requested_error = error
                self._stop_event.set()

    def clear_stop(self) -> None:
        """Forgets the stop and its exception, so that threads can be started again."""
        with self._lock:
            self._joined = False
            self._requested_error = None
            self._stop_event.clear()

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        # Only for the thread that trains: the ones that fill its queues go on until it has left.
        leaving = notice.received() and threading.current_thread() is threading.main_thread()
        return leaving or self._stop_event.is_set()

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Around the body of a thread: an exception inside becomes a request to stop."""
        try:
            yield
        except BaseException:
            self.request_stop(ex=sys.exc_info())

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits until a stop is requested; False when `timeout` seconds pass first."""
        return self._stop_event.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Adds a thread to those that `join` waits for."""
        with self._lock:
            self._registered_threads.add(thread)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Waits for the registered threads and `threads` to end, then raises the first exception reported.

        After a stop is requested they have `stop_grace_period_secs` to end. If some are still running then,
        RuntimeError tells which, unless `ignore_live_threads`.
        """
        with self._lock:
            extra = set(threads) if threads is not None else set()
            waited = [*extra, *(self._registered_threads - extra)]
        for t in waited:
            while t.is_alive() and not self._stop_event.is_set():
                t.join(_POLL_SECONDS)
        # One grace period for all threads together, as in TensorFlow.
        deadline = time.monotonic() + stop_grace_period_secs
        for t in waited:
            if t.is_alive():
                t.join(max(deadline - time.monotonic(), 0))
        with self._lock:
            self._joined = True
            self._registered_threads = set()
            if self._requested_error is not None:
                raise self._requested_error
        stragglers = [t.name for t in waited if t.is_alive()]
        if stragglers:
            names = " ".join(stragglers)
            if not ignore_live_threads:
                raise RuntimeError(f"Coordinator stopped with threads still running: {names}")
            logging.info("Coordinator stopped with threads still running: %s", names)

    joined: bool = readonly("_joined", "Whether `join` has been called since the threads were last started.")

    def raise_requested_exception(self) -> None:
        """Raises the exception that `request_stop` was given, if any."""
        with self._lock:
            if self._requested_error is not None:
                raise self._requested_error


@export("train.LooperThread")
class LooperThread(threading.Thread):
    """A thread that calls a function again and again until its coordinator stops.

    It calls `target`, or `run_loop()` of a subclass: every `timer_interval_secs`, or without a pause
    when that is None. An exception stops the coordinator.
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise ValueError(f"'coord' argument must be a Coordinator: {coord}")
        if target is None and (args or kwargs):
            raise ValueError("'args' and 'kwargs' argument require that you also pass 'target'")
        super().__init__()
        self.daemon = True
        self._coord = coord
        self._timer_interval_secs = timer_interval_secs
        self._call = target
        self._call_args = args or ()
        self._call_kwargs = kwargs or {}
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """Starts a LooperThread that calls `target`, and returns it."""
        looper = LooperThread(coord, timer_interval_secs, target=target, args=args, kwargs=kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        """The thread's body."""
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._timer_interval_secs is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                next_time = time.monotonic()
                while not self._coord.wait_for_stop(max(next_time - time.monotonic(), 0)):
                    # From the planned time, not from now: a slow round does not shift all later ones.
                    next_time += self._timer_interval_secs
                    self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Called once before the first `run_loop`; for subclasses."""

    def stop_loop(self) -> None:
        """Called once after the last `run_loop`; for subclasses."""

    def run_loop(self) -> None:
        """One round."""
        if self._call is not None:
            self._call(*self._call_args, **self._call_kwargs)

    def isAlive(self) -> bool:
        """The old name of `is_alive`."""
        return self.is_alive()
