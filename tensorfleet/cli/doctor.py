"""`tensorfleet doctor`: what this machine has, a verdict per line."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import psutil

from tensorfleet.base import settings

_MEGABYTE = 1 << 20
_TRANSFER_BYTES = 64 * _MEGABYTE
_ROUND_TRIPS = 500
_REQUIRED_PACKAGES = ("jax", "numpy", "protobuf", "absl-py", "google-crc32c")


class Finding(NamedTuple):
    """One line of the report."""

    what: str
    found: str
    verdict: str  # "ok", "warning" or "bad"
    advice: str = ""


#: what an engine finds about the way to it, at an address or at its default
EngineCheck: TypeAlias = Callable[[str | None], Iterator[Finding]]


def examine(engine: EngineCheck | None = None, address: str | None = None) -> int:
    """Prints every finding; 1 when something would keep scripts from running."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    colours = {"ok": "green", "warning": "yellow", "bad": "red"}
    worst = 0
    checks: list[Callable[[], Iterator[Finding]]] = [_python, _packages, _devices, _memory, _ports, _token]
    checks += [_clock, _loopback, _tensorflow]
    if engine is not None:
        checks.append(functools.partial(engine, address))
    for check in checks:
        for finding in _guarded(check):
            colour = colours[finding.verdict]
            advice = f"  {finding.advice}" if finding.advice else ""
            console.print(
                f"[{colour}]{finding.verdict:>7}[/]  {finding.what:<12} {escape(finding.found)}{escape(advice)}"
            )
            worst = max(worst, int(finding.verdict == "bad"))
    return worst


def _guarded(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from check()
    except Exception as error:
        name = getattr(check, "__name__", "engine").strip("_")
        yield Finding(name, f"{type(error).__name__}: {error}", "bad")


def _python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 11)
    yield Finding(
        "Python",
        f"{version} ({sys.executable})",
        "ok" if good else "bad",
        "" if good else "install 3.11 or later",
    )


def _packages() -> Iterator[Finding]:
    for name in _REQUIRED_PACKAGES:
        try:
            yield Finding(name, importlib.metadata.version(name), "ok")
        except importlib.metadata.PackageNotFoundError:
            yield Finding(name, "not installed", "bad", f"pip install {name}")


def _devices() -> Iterator[Finding]:
    from tensorfleet.kernels.parallel_for import core_count
    from tensorfleet.runtime.devices import load_jax

    start = time.perf_counter()
    jax, _ = load_jax()
    names = ", ".join(str(device) for device in jax.devices())
    yield Finding("devices", f"{names} (JAX ready in {time.perf_counter() - start:.1f} s)", "ok")
    if os.path.exists("/dev/nvidiactl") and not any(d.platform == "gpu" for d in jax.devices()):
        yield Finding("GPU", "present, but JAX does not find it", "warning", 'pip install "jax[cuda12]"')
    cores = core_count()
    few = cores < 4
    yield Finding(
        "cores",
        str(cores),
        "warning" if few else "ok",
        "more than 2 workers on this machine bring little" * few,
    )


def _memory() -> Iterator[Finding]:
    free = psutil.virtual_memory().available / 2**30
    yield Finding("memory", f"{free:.1f} GB free", "ok" if free > 1 else "warning")


def _ports() -> Iterator[Finding]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        yield Finding("ports", f"can listen on loopback (port {listener.getsockname()[1]})", "ok")
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", 2222))
            yield Finding("port 2222", "free", "ok")
        except OSError as error:
            yield Finding(
                "port 2222", str(error.strerror), "warning", "scripts with this port will not start"
            )
    address = socket.gethostbyname("localhost")
    good = address.startswith("127.")
    yield Finding("localhost", address, "ok" if good else "warning", "" if good else "check /etc/hosts")


def _token() -> Iterator[Finding]:
    if settings.TOKEN():
        yield Finding("token", "from TENSORFLEET_TOKEN", "ok")
        return
    given = settings.TOKEN_FILE()
    if not given:
        yield Finding("token", "created for each run", "ok")
        return
    if not Path(given).is_file():
        yield Finding("token", f"{given} does not exist", "bad", "check TENSORFLEET_TOKEN_FILE")
        return
    open_to_others = Path(given).stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    verdict, advice = ("bad", f"chmod 600 {given}") if open_to_others else ("ok", "")
    yield Finding("token", given + " is readable by others" * bool(open_to_others), verdict, advice)


def _clock() -> Iterator[Finding]:
    year = time.gmtime().tm_year
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    resolution = time.get_clock_info("monotonic").resolution
    good = 2024 <= year < 2100 and resolution < 1e-3
    yield Finding(
        "clock",
        now,
        "ok" if good else "warning",
        "" if good else "set the clock: event files contain the time",
    )


def _loopback() -> Iterator[Finding]:
    rate, trip = _measure()
    yield Finding("bandwidth", f"{rate / 2**30:.1f} GB/s over loopback", "ok" if rate > 2**28 else "warning")
    good = trip < 1e-3
    advice = "" if good else "the machine is busy"
    yield Finding("round trip", f"{trip * 1e6:.0f} µs over loopback", "ok" if good else "warning", advice)


def _measure() -> tuple[float, float]:
    """Bytes per second, and seconds from a byte to its answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        echo = threading.Thread(target=_answer, args=(server,), daemon=True)
        echo.start()
        with socket.create_connection(server.getsockname(), timeout=30) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            start = time.perf_counter()
            for _ in range(_ROUND_TRIPS):
                connection.sendall(b"x")
                connection.recv(1)
            trip = (time.perf_counter() - start) / _ROUND_TRIPS
            block = bytes(_MEGABYTE)
            start = time.perf_counter()
            for _ in range(_TRANSFER_BYTES // _MEGABYTE):
                connection.sendall(block)
            connection.recv(1)
            rate = _TRANSFER_BYTES / (time.perf_counter() - start)
        echo.join(5)
    return rate, trip


def _answer(server: socket.socket) -> None:
    with contextlib.closing(server.accept()[0]) as connection:
        for _ in range(_ROUND_TRIPS):
            connection.sendall(connection.recv(1))
        buffer, left = bytearray(_MEGABYTE), _TRANSFER_BYTES
        while left > 0:
            left -= connection.recv_into(buffer)
        connection.sendall(b"x")


def _tensorflow() -> Iterator[Finding]:
    try:
        version = importlib.metadata.version("tensorflow")
    except importlib.metadata.PackageNotFoundError:
        yield Finding("tensorflow", "not installed (not needed)", "ok")
    else:
        yield Finding("tensorflow", f"{version}, used only with --no-alias", "ok")
