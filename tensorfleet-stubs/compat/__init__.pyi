# Written by tools/make_stubs.py.
from tensorfleet.base.platform.compat import _as_text as _as_str
from tensorfleet.base.platform.compat import _as_text as _as_text
from tensorfleet.base.platform.compat import as_bytes as as_bytes
from tensorfleet.base.platform.compat import as_str_any as as_str_any
from tensorfleet.base.platform.compat import forward_compatibility_horizon as forward_compatibility_horizon
from tensorfleet.base.platform.compat import forward_compatible as forward_compatible
from tensorfleet.base.platform.compat import path_to_str as path_to_str
from tensorfleet.base.shapes import dimension_at_index as dimension_at_index
from tensorfleet.base.shapes import dimension_value as dimension_value
from tensorfleet.compat import v2 as v2
import tensorfleet as _v1
import typing
as_str = _as_str
as_text = _as_text
bytes_or_text_types: typing.Any
complex_types: typing.Any
integral_types: typing.Any
real_types: typing.Any
v1 = _v1
