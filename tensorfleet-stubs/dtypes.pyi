# Written by tools/make_stubs.py.
from tensorfleet.base.dtypes import DType as DType
from tensorfleet.base.dtypes import DType as _DType
from tensorfleet.base.dtypes import as_dtype as as_dtype
from tensorfleet.ops.math.cast import cast as cast
from tensorfleet.ops.math.cast import saturate_cast as saturate_cast
from tensorfleet.ops.math.complex_numbers import complex as complex
import typing
QUANTIZED_DTYPES: typing.Any
def as_string(input: typing.Any, precision: typing.Any = ..., scientific: typing.Any = ..., shortest: typing.Any = ..., width: typing.Any = ..., fill: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
bfloat16: _DType
bool: _DType
complex128: _DType
complex64: _DType
double: _DType
float16: _DType
float32: _DType
float64: _DType
half: _DType
int16: _DType
int32: _DType
int64: _DType
int8: _DType
qint16: _DType
qint32: _DType
qint8: _DType
quint16: _DType
quint8: _DType
resource: _DType
string: _DType
uint16: _DType
uint32: _DType
uint64: _DType
uint8: _DType
variant: _DType
