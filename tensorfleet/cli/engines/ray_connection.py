"""The launcher's connection to a Ray cluster: quiet, and with errors in one sentence."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from tensorfleet.cli.engines.base import EngineError
from tensorfleet.cli.engines.ray_probe import is_head

ADDRESS = "RAY_ADDRESS"
_TOKEN, _TOKEN_PATH = "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
_USE_TLS = "RAY_USE_TLS"
_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 8.0  # for the head to connect and to answer one call
#: set by Ray in the entry point of `ray job submit`: the job's runtime environment among others
_JOB_CONFIG = "RAY_JOB_CONFIG_JSON_ENV_VAR"
# For Ray's library, where the user has not set them: it tries twenty times otherwise, also with a wrong token.
_DEFAULTS = {"RAY_NUM_REDIS_GET_RETRIES": "5", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


def ray_library() -> Any:
    """The Ray library, or an error that says how to get it."""
    try:
        import ray
    except ImportError as error:
        raise EngineError(
            f"Ray is not installed ({error}). Install it with: pip install 'tensorfleet[ray]'"
        ) from None
    return ray


def brings_folder() -> bool:
    """Whether this is the entry point of a `ray job submit` whose working directory Ray has brought to the nodes."""
    return bool(_job_environment().get("working_dir"))


def advice_of_job() -> str:
    """What to do where the entry point of a `ray job submit` does not find a script. Empty anywhere else."""
    if _JOB_CONFIG not in os.environ or brings_folder():
        return ""
    return " ray job submit sends no files without --working-dir: add --working-dir FOLDER, or give a path that this machine has."


def _job_environment() -> dict[str, Any]:
    """The runtime environment of the job that this process is the entry point of."""
    try:
        config = json.loads(os.environ.get(_JOB_CONFIG) or "{}")
    except ValueError:  # Ray's library will say so
        return {}
    return dict(config.get("runtime_env") or {}) if isinstance(config, dict) else {}


def chosen_address(given: str | None) -> str:
    """Where the cluster is: as the user says, as RAY_ADDRESS says, or the one that runs on this machine."""
    return given or os.environ.get(ADDRESS) or "auto"


def connect(given: str | None, runtime_env: dict[str, Any] | None = None) -> None:
    """Connects this process to the cluster. Raises `EngineError`."""
    address = chosen_address(given)
    with _defaults():
        ray = ray_library()
    _check_token_file()
    _try_to_reach(address)
    options: dict[str, Any] = {"runtime_env": runtime_env} if runtime_env else {}
    if "://" not in address:
        options |= {"log_to_driver": False, "logging_level": logging.CRITICAL}
    said: list[str] = []
    try:
        with _defaults(), _own_handlers(), _stderr_kept(said):
            ray.init(address=address, **options)
    # Ray exits, with the number of SIGTERM, where it does not find the cluster.
    except (Exception, SystemExit) as error:
        raise EngineError(_sentence(address, error, "".join(said))) from None
    _silence()


def head_address() -> str | None:
    """Where the head is that this process is connected to; None if Ray's client is in between."""
    ray = ray_library()
    if ray.util.client.ray.is_connected():
        return None
    return str(ray.get_runtime_context().gcs_address)


def disconnect() -> None:
    """Leaves the cluster, which ends all that this process has started there. Never raises."""
    with contextlib.suppress(Exception), _own_handlers():
        import ray

        ray.shutdown()


def _check_token_file() -> None:
    """Ray says of a file that is not there that the token is wrong."""
    path = os.environ.get(_TOKEN_PATH)
    if path and not os.environ.get(_TOKEN) and not os.access(path, os.R_OK):
        what = "which you may not read" if os.path.exists(path) else "which does not exist"
        raise EngineError(
            f"{_TOKEN_PATH} names {path}, {what}. Put the token of the cluster there, or set {_TOKEN}."
        )


def _try_to_reach(address: str) -> None:
    """Ray itself tries for two minutes."""
    scheme, _, place = address.rpartition("://")
    host, colon, port = place.rpartition(":")
    if scheme in ("http", "https"):
        raise EngineError(
            f"{address} is the address of Ray's job server. Submit the whole run there: "
            f"ray job submit --address {address} --working-dir . -- tensorfleet run --on ray ..."
        )
    if not colon or not port.isdigit():
        if address != "auto":
            raise EngineError(f"{address!r} is not the address of a Ray cluster. Write HOST:PORT, or auto.")
        return
    try:
        if _may_be_cluster(host.strip("[]"), int(port), bool(scheme)):
            return
        reason: object = "another program listens there, or a cluster with TLS (RAY_USE_TLS)"
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
    raise EngineError(
        f"Cannot reach a Ray cluster at {address}: {reason}. Start one with `ray start --head`, or give the "
        f"address of one with --address or {ADDRESS}."
    )


def _may_be_cluster(host: str, port: int, has_client: bool) -> bool:
    """Whether something listens that may be Ray's. Raises OSError if nothing does."""
    # The server of Ray's client knows other calls, and a call without TLS tells nothing of a server with it.
    if has_client or os.environ.get(_USE_TLS, "0").lower() in ("1", "true"):
        socket.create_connection((host, port), _CONNECT_SECONDS).close()
        return True
    return is_head(host, port, _ANSWER_SECONDS)


def _sentence(address: str, error: BaseException, said: str) -> str:
    import ray

    text = str(error).strip()
    first = text.splitlines()[0] if text else type(error).__name__
    if isinstance(error, ray.exceptions.AuthenticationError) or "Unauthenticated" in said:
        has_token = any(os.environ.get(name) for name in (_TOKEN, _TOKEN_PATH))
        token = "the token is not that cluster's" if has_token else "it wants a token"
        return (
            f"The Ray cluster at {address} does not let us in: {token}. Set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN "
            "or RAY_AUTH_TOKEN_PATH."
        )
    if isinstance(error, ConnectionError) and address == "auto":
        return (
            "No Ray cluster is running on this machine. Start one with `ray start --head`, or give the address of "
            f"one with --address or {ADDRESS}."
        )
    if isinstance(error, SystemExit):
        return f"The Ray cluster at {address} does not answer. Is it of Ray {ray.__version__}, and is its token ours?"
    if "Version mismatch" in text:
        return f"The Ray cluster at {address} has other versions than this machine: {' '.join(text.split())}"
    if isinstance(error, ImportError):
        return f"{address} needs more of Ray: {first} Install it with: pip install 'ray[client]'"
    return f"Cannot use the Ray cluster at {address}: {' '.join(text.split()) or first}"


@contextlib.contextmanager
def _defaults() -> Iterator[None]:
    """Ray's library reads these when it is loaded; tasks and other programs do not see them."""
    ours = {name: value for name, value in _DEFAULTS.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


@contextlib.contextmanager
def _stderr_kept(said: list[str]) -> Iterator[None]:
    """Keeps what Ray's library writes to this process's stderr, past Python, while it connects."""
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)
            kept.seek(0)
            said.append(kept.read().decode(errors="replace"))


@contextlib.contextmanager
def _own_handlers() -> Iterator[None]:
    """Ray sets a handler for SIGTERM of its own, which would end the launcher without a word."""
    is_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGTERM, signal.SIGINT) if is_main else ()
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _silence() -> None:
    """Messages of the nodes go to our output whatever `log_to_driver` says; Ray has no public switch for that."""
    with contextlib.suppress(ImportError, AttributeError):
        from ray._private import worker

        worker.print_to_stdstream = lambda *_, **__: None
