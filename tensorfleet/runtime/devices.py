"""The devices of this process: virtual CPUs, and GPUs where JAX has them. JAX is loaded when first needed.

All virtual CPUs are one device of JAX: XLA would divide its work into as many pieces as it has devices, and the
threads that run a step's parts side by side need no more than one.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tensorfleet.base import settings
from tensorfleet.kernels.parallel_for import core_count, wanted_threads
from tensorfleet.runtime import gpus
from tensorfleet.runtime.xla_exit_guard import starting_xla, wait_for_others

if TYPE_CHECKING:
    from types import ModuleType

    from jax import Device

    from tensorfleet.base.protos import ConfigProto
    from tensorfleet.base.types import ArrayModule

# glibc's names of what `mallopt` sets
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_MIN_KEPT_BYTES = 128 << 20  # of freed memory, on machines that have little
# LLVM unrolls a loop over fewer than 64 elements, the last axis of most images, before it looks whether it can work on
# several at once, and then cannot: such programs take three times as long.
_EXTRA, _KEEP_LOOPS = "--xla_backend_extra_options", "xla_cpu_disable_loop_unrolling=true"
_Started = TypeVar("_Started")
_lock = threading.Lock()
_loaded: tuple[ModuleType, ArrayModule] | None = None
_cpus = [1]
_collect: list[Callable[[], None]] = []
_had_wide_types = False  # whether the program itself had turned JAX's 64-bit types on
_narrow = threading.local()
_narrow_threads = 0
_lone: list[Device | None] = []  # the CPU as a device of one thread, once it was asked for


def load_jax() -> tuple[ModuleType, ArrayModule]:
    """`(jax, jax.numpy)`, configured for us at the first call."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                with starting_xla:  # to start it takes a second, in which the process may end
                    _loaded = _load()
    return _loaded


@contextlib.contextmanager
def types_of_program() -> Iterator[None]:
    """JAX's 64-bit types as the program had them before `load_jax`, in this thread: for computations of its own."""
    global _narrow_threads
    jax, _ = load_jax()
    if _had_wide_types or is_narrow():
        yield
        return
    with jax.enable_x64(False):
        with _lock:
            _narrow_threads += 1
        _narrow.is_on = True
        try:
            yield
        finally:
            _narrow.is_on = False
            with _lock:
                _narrow_threads -= 1


def is_narrow() -> bool:
    """Whether this thread is inside of `types_of_program`, without 64-bit types."""
    return _narrow_threads > 0 and getattr(_narrow, "is_on", False)


@contextlib.contextmanager
def wide_types() -> Iterator[None]:
    """JAX with its 64-bit types, as graphs need them, inside of `types_of_program`."""
    with load_jax()[0].enable_x64(True):
        _narrow.is_on = False
        try:
            yield
        finally:
            _narrow.is_on = True


def collect_jax_garbage() -> None:
    """Drops JAX's references to the arrays of finished calls, as it would at its next call: lent memory waits for that."""
    if _collect:
        _collect[0]()


def _load() -> tuple[ModuleType, ArrayModule]:
    _quiet()
    import jax
    import jax.numpy as jnp

    global _had_wide_types
    config: Any = jax.config  # it has no types
    _had_wide_types = bool(config.jax_enable_x64)
    config.update("jax_enable_x64", True)
    # Run in the calling thread where XLA can; where it cannot, the step waits for its results.
    config.update("jax_cpu_enable_async_dispatch", False)
    _keep_compilations(jax)
    _keep_memory()
    driver = gpus.has_driver()
    if not driver and not getattr(config, "jax_platforms", None):
        config.update("jax_platforms", "cpu")  # looking for other devices takes time and logs complaints
    before_us = _is_started()
    if not before_us:
        gpus.starting(jax)
    first = _start(jax)
    gpus.started(before_us)
    if driver:
        config.update("jax_default_device", first)  # a GPU is used when named
    with contextlib.suppress(ImportError, AttributeError):  # JAX may move it: it is not public
        _collect.append(attrgetter("xla_client._xla.collect_garbage")(import_module("jax._src.lib")))
    atexit.unregister(wait_for_others)
    atexit.register(wait_for_others)  # before what JAX itself does then
    namespace: Any = jnp  # a module is no class: mypy cannot know that it has these functions
    return jax, namespace


# A process may end before XLA is there, or while a thread starts it.
atexit.register(wait_for_others)


def _quiet() -> None:
    """Keeps JAX's debug lines out of the log of a script that turns on all loggers."""
    import logging

    logger = logging.getLogger("jax")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)


def _is_started() -> bool:
    """Whether the user's program has had JAX start its devices before us."""
    with contextlib.suppress(ImportError, AttributeError):  # JAX may move it: it is not public
        from jax._src import xla_bridge

        return xla_bridge.backends_are_initialized()
    return False


def _start(jax: ModuleType) -> Device:
    """Starts XLA, which reads these variables only then, and gives the CPU."""
    environment = {"XLA_FLAGS": _flags(os.environ.get("XLA_FLAGS", "")), **gpus.environment()}
    wanted = wanted_threads()
    if wanted and "NPROC" not in os.environ:
        environment["NPROC"] = str(wanted)
    return _within(environment, lambda: jax.devices("cpu")[0])


def _flags(user_flags: str) -> str:
    """The user's flags of XLA with ours, unless the user has set such options."""
    return user_flags if _EXTRA in user_flags else f"{user_flags} {_EXTRA}={_KEEP_LOOPS}".strip()


def _within(environment: dict[str, str], start: Callable[[], _Started]) -> _Started:
    """Calls a function while the process has these variables in its environment."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        return start()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def lone_cpu() -> Device | None:
    """The CPU as a device whose programs run in the calling thread alone; None where the usual one is no other."""
    with _lock:
        if not _lone:
            _lone.append(_start_lone())
    return _lone[0]


def _start_lone() -> Device | None:
    if core_count() == 1 or "NPROC" in os.environ or wanted_threads() == 1:
        return None
    try:
        from jaxlib import xla_client

        client: Any = _within({"NPROC": "1"}, lambda: xla_client.make_cpu_client(asynchronous=False))
        return client.local_devices()[0]
    except Exception:  # a version of JAX that has no such thing
        return None


def on_cpu(device: Device | None, values: Sequence[Any]) -> Sequence[Any]:
    """Values for a program on one of the CPU's devices (None for the usual one).

    Arrays of the other one come as numpy's, which costs nothing.
    """
    if not _lone or _lone[0] is None:
        return values
    wanted = device is not None
    moved = []
    for value in values:
        sharding = getattr(value, "sharding", None)
        if sharding is not None and (_lone[0] in sharding.device_set) is not wanted:
            value = np.asarray(value)
        moved.append(value)
    return moved


def _keep_compilations(jax: ModuleType) -> None:
    """Keeps compiled programs on disk between processes, unless the user has decided otherwise."""
    if jax.config.jax_compilation_cache_dir is not None or os.environ.get(settings.CACHE.name) == "":
        return
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = settings.CACHE() or os.path.join(home, "tensorfleet", "xla")
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError:
        return  # a read-only home: compile anew each time
    jax.config.update("jax_compilation_cache_dir", path)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def _keep_memory() -> None:
    """Lets malloc keep what one step frees for the next, unless the user has tuned it.

    As it comes, glibc hands freed megabytes back to the system and faults them in again page by page: in a
    step that replaces its variables that is a quarter of the time, and in one of a residual network, whose program
    asks XLA for 150 MB each time, a third. It keeps what is mapped by itself least of all, so nothing is.
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # another C library
    mallopt(_MMAP_MAX, 0)
    mallopt(_TRIM_THRESHOLD, _kept_memory())
    mallopt(_TOP_PAD, 16 << 20)


def _kept_memory() -> int:
    """How many bytes of freed memory the process keeps: a quarter of the machine's, within the range of a C int."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):  # a system that does not tell
        return _MIN_KEPT_BYTES
    return min(max(whole // 4, _MIN_KEPT_BYTES), (1 << 31) - 1)


def gpu_count() -> int:
    """How many GPUs JAX can use, found without starting JAX where there is no driver."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1") or not gpus.has_driver():
        return 0
    jax, _ = load_jax()
    return len(gpus.cards(jax))


def divide_cpu(count: int) -> None:
    """How many CPUs a session has whose configuration does not say."""
    _cpus[0] = max(count, 1)


def local_device_names(
    config: ConfigProto | None = None, prefix: str = "/job:localhost/replica:0/task:0"
) -> list[str]:
    """The full names of a session's devices, CPUs first. Counting GPUs starts JAX, with the session's options for them."""
    counts: dict[str, int] = {} if config is None else dict(config.device_count)
    wanted = counts.get("GPU", counts.get("gpu"))
    visible = None
    if config is not None:
        options = gpus.read_options(config.gpu_options)
        gpus.choose(options)
        visible = options.visible
    available = 0 if wanted == 0 else gpu_count()
    if visible is not None:
        available = min(available, len(visible))
    cpus = max(counts.get("CPU", counts.get("cpu", _cpus[0])), 1)
    names = [f"{prefix}/device:CPU:{i}" for i in range(cpus)]
    return names + [
        f"{prefix}/device:GPU:{i}" for i in range(available if wanted is None else min(available, wanted))
    ]


_jax_devices: dict[str, Device] = {}


def jax_device(name: str, others: bool = False) -> Device | None:
    """The JAX device behind a device name; None for a CPU.

    A CPU needs no transfer unless the step has arrays of other kinds of devices too.
    """
    cpu = "/device:CPU" in name
    if cpu and not others:
        return None
    device = _jax_devices.get(name)
    if device is None:
        jax, _ = load_jax()
        device = jax.devices("cpu")[0] if cpu else gpus.cards(jax)[int(name.rsplit(":", 1)[1])]
        _jax_devices[name] = device
    return device
