"""The exceptions a TensorFleet program can raise, with TensorFlow's classes and codes.

    OpError
      CancelledError  UnknownError  InvalidArgumentError  DeadlineExceededError  NotFoundError
      AlreadyExistsError  PermissionDeniedError  ResourceExhaustedError  FailedPreconditionError
      AbortedError  OutOfRangeError  UnimplementedError  InternalError  UnavailableError
      DataLossError  UnauthenticatedError

An error about an operation prints its message, then the operation, then the user's line that made
it. The message itself ends with what to do.
"""

from __future__ import annotations

import traceback
import typing
import warnings
from typing import Any

if typing.TYPE_CHECKING:  # a name of this module in capitals would become one of `tf.errors`
    from tensorfleet.base.protos import NodeDef
    from tensorfleet.base.types import FailedOperation

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class OpError(Exception):
    """An error while running a graph; `op`, `node_def`, `message` and `error_code` tell what and where."""

    #: the name of the operation, when the error came from another task: its session finds the operation itself
    remote_op: str | None = None

    def __init__(
        self, node_def: NodeDef | None, op: FailedOperation | None, message: str, error_code: int
    ) -> None:
        super().__init__()
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = error_code

    def __reduce__(self) -> tuple[type[OpError], tuple[Any, ...]]:
        # Operations belong to a graph in one process; what travels is the text.
        text = None if self._message is None else str(self)
        if type(self) is OpError:
            return OpError, (None, None, text, self._error_code)
        return type(self), (None, None, text)

    @property
    def message(self) -> str:
        """The text of the error."""
        return self._message

    @property
    def op(self) -> FailedOperation | None:
        """The `tf.Operation` that failed, or `None` when the failure has no operation in this graph."""
        return self._op

    @property
    def node_def(self) -> NodeDef | None:
        """The `NodeDef` of the operation that failed, or `None`."""
        if self._node_def is None and self._op is not None:
            return self._op.node_def
        return self._node_def

    @property
    def error_code(self) -> int:
        """The integer code of the error's class."""
        return self._error_code

    def __str__(self) -> str:
        if self._op is None:
            return str(self._message)
        text = f"{self._message}\n  op: {self._op.name} ({self._op.type})"
        where = self._op.source_line
        return f"{text}\n  made at {where}" if where else text


class _WithCode(OpError):
    """Base of the errors whose class tells their code."""

    _code: int

    def __init__(self, node_def: NodeDef | None, op: FailedOperation | None, message: str) -> None:
        super().__init__(node_def, op, message, self._code)


class CancelledError(_WithCode):
    """The operation or step was cancelled."""

    _code = CANCELLED


class UnknownError(OpError):
    """An error with no better class."""

    def __init__(
        self, node_def: NodeDef | None, op: FailedOperation | None, message: str, error_code: int = UNKNOWN
    ) -> None:
        super().__init__(node_def, op, message, error_code)


class InvalidArgumentError(_WithCode):
    """An operation received an argument it cannot take."""

    _code = INVALID_ARGUMENT


def invalid(message: str) -> InvalidArgumentError:
    """The error of a kernel that cannot take its arguments; its caller adds the operation."""
    return InvalidArgumentError(None, None, message)


class DeadlineExceededError(_WithCode):
    """A time limit passed before the operation finished."""

    _code = DEADLINE_EXCEEDED


class NotFoundError(_WithCode):
    """A file, a tensor or a task is not there."""

    _code = NOT_FOUND


class AlreadyExistsError(_WithCode):
    """A file, directory or name exists already."""

    _code = ALREADY_EXISTS


class PermissionDeniedError(_WithCode):
    """The caller may not do this."""

    _code = PERMISSION_DENIED


class ResourceExhaustedError(_WithCode):
    """Memory, disk or a quota ran out."""

    _code = RESOURCE_EXHAUSTED


class FailedPreconditionError(_WithCode):
    """The system is not in the state the operation needs, such as a variable read before it has a value."""

    _code = FAILED_PRECONDITION


class AbortedError(_WithCode):
    """The operation was given up, usually to be retried."""

    _code = ABORTED


class OutOfRangeError(_WithCode):
    """Reading went past the end, such as of a closed queue or a dataset."""

    _code = OUT_OF_RANGE


class UnimplementedError(_WithCode):
    """The combination of operation and arguments has no kernel."""

    _code = UNIMPLEMENTED


class InternalError(_WithCode):
    """Something that should never happen did."""

    _code = INTERNAL


class UnavailableError(_WithCode):
    """A task cannot be reached now."""

    _code = UNAVAILABLE


class DataLossError(_WithCode):
    """Stored data is damaged beyond repair."""

    _code = DATA_LOSS


class UnauthenticatedError(_WithCode):
    """The caller did not authenticate."""

    _code = UNAUTHENTICATED


# Not type[OpError], whose own constructor takes a code too.
_BY_CODE: dict[int, type[Any]] = {cls._code: cls for cls in _WithCode.__subclasses__()}
_BY_CODE[UNKNOWN] = UnknownError
_BY_CLASS = {cls: code for code, cls in _BY_CODE.items()}


def exception_type_from_error_code(error_code: int) -> type[Any]:
    """Returns the exception class of an integer code."""
    return _BY_CODE[error_code]


def error_code_from_exception_type(cls: type[OpError]) -> int | OpError:
    """Returns the integer code of an exception class; for an argument that is no class, warns and returns an error."""
    if not isinstance(cls, type):
        warnings.warn("Unknown class exception", stacklevel=2)
        return UnknownError(None, None, "Unknown class exception")
    return _BY_CLASS.get(cls, UNKNOWN)


class OperatorNotAllowedInGraphError(TypeError):
    """A tensor was used where Python needs its value, which a graph does not have."""


class raise_exception_on_not_ok_status:
    """Kept for programs that used it: errors are raised where they happen."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, type_arg: object, value_arg: object, traceback_arg: object) -> None:
        return None


def about(op: FailedOperation | None, error: BaseException) -> OpError:
    """Turns an exception of a kernel into an `OpError` that names `op`; an OpError without op gains it."""
    if isinstance(error, OpError):
        if error._op is None:
            error._op = op
        return error
    if isinstance(error, MemoryError):
        text = f"OOM when running the kernel: {error or 'out of memory'}. Use smaller tensors or a smaller batch."
        return ResourceExhaustedError(None, op, text)
    # NumPy and our kernels raise these for arguments that do not fit; anything else is a fault of the kernel.
    if isinstance(error, (ValueError, TypeError, ZeroDivisionError, IndexError)):
        return InvalidArgumentError(None, op, str(error))
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" (at {last[0].filename}:{last[0].lineno})" if last else ""
    return InternalError(None, op, f"{type(error).__name__}: {error}{where}")


# In tracebacks, logs and pickles the classes have the names that users import them by.
for _class in (OpError, *_BY_CODE.values()):
    _class.__module__ = "tensorfleet.errors"
