"""`tf.logging`: Python's logging, under the name and in the format that scripts expect."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

from tensorfleet.base.naming import export, publish

if TYPE_CHECKING:
    import logging

DEBUG, INFO, WARN, ERROR, FATAL = 10, 20, 30, 40, 50
for _name in ("DEBUG", "INFO", "WARN", "ERROR", "FATAL"):
    publish(globals()[_name], f"logging.{_name}")
# The module that this package logs with, so that a test which replaces a function in it sees what is logged.
publish(sys.modules[__name__], "python.platform.tf_logging")
sys.modules["tensorfleet.python.platform.tf_logging"] = sys.modules[__name__]

# The logger has TensorFlow's name: scripts quiet it with logging.getLogger("tensorflow").
_NAME = "tensorflow"
_lock = threading.Lock()
_logger: logging.Logger | None = None
_counts: Counter[tuple[str, int]] = Counter()


@export("get_logger")
def get_logger() -> logging.Logger:
    """The Python logger behind `tf.logging`."""
    import logging

    global _logger
    with _lock:
        if _logger is None:
            _logger = logging.getLogger(_NAME)
            # A script that has configured logging keeps its own handlers: no line appears twice.
            if not logging.getLogger().handlers and not _logger.handlers:
                handler = logging.StreamHandler(sys.stderr)
                handler.setFormatter(_formatter())
                handler.addFilter(_shown_once)
                _logger.addHandler(handler)
    return _logger


def _formatter() -> logging.Formatter:
    import logging

    from tensorfleet.base import settings

    if settings.LOG_FORMAT() == "json":
        from tensorfleet.base.log_lines import JsonFormatter

        return JsonFormatter()
    return logging.Formatter(logging.BASIC_FORMAT)


def _shown_once(record: logging.LogRecord) -> bool:
    """Marks a record as shown: absl's handler, which `tf.app.run` puts behind all loggers, then leaves it out."""
    vars(record)["shown_by_tensorflow"] = True
    absl = sys.modules.get("absl.logging")
    handler = absl and absl.get_absl_handler()
    if handler and _is_new not in handler.filters:
        handler.addFilter(_is_new)
    return True


def _is_new(record: logging.LogRecord) -> bool:
    return "shown_by_tensorflow" not in vars(record)


@export("logging.log")
def log(level: int, msg: object, *args: object, **kwargs: Any) -> None:
    """Logs `msg % args` at a level."""
    get_logger().log(level, msg, *args, **_from_caller(kwargs))


@export("logging.debug")
def debug(msg: object, *args: object, **kwargs: Any) -> None:
    """Logs at level DEBUG."""
    get_logger().debug(msg, *args, **_from_caller(kwargs))


@export("logging.info")
def info(msg: object, *args: object, **kwargs: Any) -> None:
    """Logs at level INFO; shown after `set_verbosity(tf.logging.INFO)`."""
    get_logger().info(msg, *args, **_from_caller(kwargs))


@export("logging.warning")
def warning(msg: object, *args: object, **kwargs: Any) -> None:
    """Logs at level WARN."""
    get_logger().warning(msg, *args, **_from_caller(kwargs))


@export("logging.warn")
def warn(msg: object, *args: object, **kwargs: Any) -> None:
    """Logs at level WARN."""
    get_logger().warning(msg, *args, **_from_caller(kwargs))


@export("logging.error")
def error(msg: object, *args: object, **kwargs: Any) -> None:
    """Logs at level ERROR."""
    get_logger().error(msg, *args, **_from_caller(kwargs))


@export("logging.fatal")
def fatal(msg: object, *args: object, **kwargs: Any) -> None:
    """Logs at level FATAL; the program goes on."""
    get_logger().critical(msg, *args, **_from_caller(kwargs))


@export("logging.vlog")
def vlog(level: int, msg: object, *args: object, **kwargs: Any) -> None:
    """Logs at a numeric level."""
    get_logger().log(level, msg, *args, **_from_caller(kwargs))


@export("logging.TaskLevelStatusMessage")
def task_level_status_message(msg: object) -> None:
    """Logs at level ERROR."""
    get_logger().error(msg, stacklevel=2)


@export("logging.log_every_n")
def log_every_n(level: int, msg: object, n: int, *args: object) -> None:
    """Logs the first and then every n-th time that this line of the program is reached."""
    if _count() % n == 0:
        get_logger().log(level, msg, *args, stacklevel=2)


@export("logging.log_first_n")
def log_first_n(level: int, msg: object, n: int, *args: object) -> None:
    """Logs the first n times that this line of the program is reached."""
    if _count() < n:
        get_logger().log(level, msg, *args, stacklevel=2)


@export("logging.log_if")
def log_if(level: int, msg: object, condition: object, *args: object) -> None:
    """Logs when `condition` holds."""
    if condition:
        get_logger().log(level, msg, *args, stacklevel=2)


@export("logging.flush")
def flush() -> None:
    """Writes out the buffers of the handlers."""
    for handler in get_logger().handlers:
        handler.flush()


@export("logging.get_verbosity")
def get_verbosity() -> int:
    """The lowest level that is shown."""
    return get_logger().getEffectiveLevel()


@export("logging.set_verbosity")
def set_verbosity(v: int | str) -> None:
    """Shows messages of level `v` (such as `tf.logging.INFO`) and above."""
    get_logger().setLevel(v)


def _from_caller(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The line shown is the one that called us."""
    return {**kwargs, "stacklevel": kwargs.get("stacklevel", 1) + 1}


def _count() -> int:
    """How often the line that called our caller was reached before."""
    frame = sys._getframe(2)  # noqa: SLF001 - Python's own
    key = (frame.f_code.co_filename, frame.f_lineno)
    with _lock:
        _counts[key] += 1
        return _counts[key] - 1
