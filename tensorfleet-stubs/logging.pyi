# Written by tools/make_stubs.py.
from tensorfleet.base.logging import debug as debug
from tensorfleet.base.logging import error as error
from tensorfleet.base.logging import fatal as fatal
from tensorfleet.base.logging import flush as flush
from tensorfleet.base.logging import get_verbosity as get_verbosity
from tensorfleet.base.logging import info as info
from tensorfleet.base.logging import log as log
from tensorfleet.base.logging import log_every_n as log_every_n
from tensorfleet.base.logging import log_first_n as log_first_n
from tensorfleet.base.logging import log_if as log_if
from tensorfleet.base.logging import set_verbosity as set_verbosity
from tensorfleet.base.logging import task_level_status_message as _TaskLevelStatusMessage
from tensorfleet.base.logging import vlog as vlog
from tensorfleet.base.logging import warn as warn
from tensorfleet.base.logging import warning as warning
import builtins
DEBUG: builtins.int
ERROR: builtins.int
FATAL: builtins.int
INFO: builtins.int
TaskLevelStatusMessage = _TaskLevelStatusMessage
WARN: builtins.int
