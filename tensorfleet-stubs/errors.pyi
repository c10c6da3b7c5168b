# Written by tools/make_stubs.py.
from tensorfleet.base.errors import AbortedError as AbortedError
from tensorfleet.base.errors import AlreadyExistsError as AlreadyExistsError
from tensorfleet.base.errors import CancelledError as CancelledError
from tensorfleet.base.errors import DataLossError as DataLossError
from tensorfleet.base.errors import DeadlineExceededError as DeadlineExceededError
from tensorfleet.base.errors import FailedPreconditionError as FailedPreconditionError
from tensorfleet.base.errors import InternalError as InternalError
from tensorfleet.base.errors import InvalidArgumentError as InvalidArgumentError
from tensorfleet.base.errors import NotFoundError as NotFoundError
from tensorfleet.base.errors import OpError as OpError
from tensorfleet.base.errors import OutOfRangeError as OutOfRangeError
from tensorfleet.base.errors import PermissionDeniedError as PermissionDeniedError
from tensorfleet.base.errors import ResourceExhaustedError as ResourceExhaustedError
from tensorfleet.base.errors import UnauthenticatedError as UnauthenticatedError
from tensorfleet.base.errors import UnavailableError as UnavailableError
from tensorfleet.base.errors import UnimplementedError as UnimplementedError
from tensorfleet.base.errors import UnknownError as UnknownError
from tensorfleet.base.errors import error_code_from_exception_type as error_code_from_exception_type
from tensorfleet.base.errors import exception_type_from_error_code as exception_type_from_error_code
from tensorfleet.base.errors import raise_exception_on_not_ok_status as raise_exception_on_not_ok_status
import builtins
ABORTED: builtins.int
ALREADY_EXISTS: builtins.int
CANCELLED: builtins.int
DATA_LOSS: builtins.int
DEADLINE_EXCEEDED: builtins.int
FAILED_PRECONDITION: builtins.int
INTERNAL: builtins.int
INVALID_ARGUMENT: builtins.int
NOT_FOUND: builtins.int
OK: builtins.int
OUT_OF_RANGE: builtins.int
PERMISSION_DENIED: builtins.int
RESOURCE_EXHAUSTED: builtins.int
UNAUTHENTICATED: builtins.int
UNAVAILABLE: builtins.int
UNIMPLEMENTED: builtins.int
UNKNOWN: builtins.int
