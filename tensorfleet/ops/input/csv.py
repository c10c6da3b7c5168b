"""CSV lines: their fields as values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply_list
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.example_wire import objects
from tensorfleet.kernels.string_buffers import MANY, ZEROS, Buffer, decimals
from tensorfleet.ops.input.decode import c_name, flat, invalid
from tensorfleet.ops.samples import case

#: The type of a column, and its default: an empty array if the field is required.
Column: TypeAlias = tuple[DType, Array]


def check_defaults(defaults: Sequence[Tensor]) -> None:
    """ValueError where the default of a column is more than one value."""
    for t in defaults:
        if t.shape.rank is not None and t.shape.rank > 1:
            raise ValueError(f"Shape must be at most rank 1 but is rank {t.shape.rank}")
        if t.shape.rank == 1 and (t.shape.as_list()[0] or 0) > 1:
            raise ValueError("Shape of a default must be a length-0 or length-1 vector, or a scalar.")


def _csv_shapes(op: Operation) -> list[TensorShape]:
    check_defaults(op._inputs[1:])
    return [op._inputs[0].shape] * len(op._outputs)


@op(
    "DecodeCSV",
    "records: string, record_defaults: list(OUT_TYPE) -> output: list(OUT_TYPE)",
    "OUT_TYPE: list({float, double, int32, int64, string}); field_delim: string = ','; "
    "use_quote_delim: bool = true; na_value: string = ''; select_cols: list(int) = []",
    shape=_csv_shapes,
    host=True,
    examples=[
        case(
            np.array([b"1,2.5,x", b'3,,"a,b"'], object),
            [np.array([0], np.int32), np.array([1], np.float32), np.array([b""], object)],
        )
    ],
)
def _decode_csv(
    ctx: HostContext,
    records: Array,
    defaults: list[Array],
    *,
    OUT_TYPE: list[DType],
    field_delim: bytes,
    use_quote_delim: bool,
    na_value: bytes,
    select_cols: list[int],
) -> tuple[Array, ...]:
    if len(field_delim) != 1:
        raise invalid("field_delim should be only 1 char")
    columns = list(zip(OUT_TYPE, map(np.asarray, defaults), strict=True))
    table = csv_table(flat(records), columns, field_delim, use_quote_delim, select_cols, na_value)
    return tuple(column.reshape(np.shape(records)) for column in table)


def csv_table(
    lines: list[bytes],
    wanted: list[Column],
    delimiter: bytes,
    quotes: bool,
    selected: list[int],
    na: bytes,
    blank: int = 0,
) -> list[Array]:
    """The columns of CSV lines as values. An empty line counts as `blank` fields."""
    width = len(wanted)
    buffer = None if selected or na or len(lines) * width < MANY else _fields(lines, width, delimiter)
    read = {} if buffer is None else _decimal_columns(buffer, wanted, len(lines))
    table, columns = [], None
    for i, (dtype, default) in enumerate(wanted):
        if i in read:
            table.append(read[i])
            continue
        if columns is None:
            columns = _csv_columns(lines, width, delimiter, quotes, selected, blank)
        table.append(_csv_column(i, columns[i], dtype, default, na))
    return table


def _decimal_columns(buffer: Buffer, wanted: list[Column], rows: int) -> dict[int, Array]:
    """The columns of numbers, without those in which some field is more than a few digits.

    A call costs as much for some fields as for many: with few rows, it reads the columns of one type together.
    """
    groups: dict[DType | int, list[int]] = {}
    for i, (dtype, _) in enumerate(wanted):
        if dtype.name != "string":
            groups.setdefault(dtype if rows < MANY else i, []).append(i)
    read = {}
    for columns in groups.values():
        fields = np.add.outer(columns, np.arange(rows) * len(wanted)).ravel()
        numbers, unread = decimals(buffer.some(fields), wanted[columns[0]][0].np_dtype)
        refused = set((unread // rows).tolist())
        table = numbers.reshape(len(columns), rows)
        read.update({i: table[k] for k, i in enumerate(columns) if k not in refused})
    return read


def _fields(lines: list[bytes], width: int, delimiter: bytes) -> Buffer | None:
    """All fields of all lines in one buffer; None when some are quoted, or a line has too few or too many."""
    text = b"\n".join([*lines, ZEROS])
    if b'"' in text or b"\r" in text or text.count(b"\n") != len(lines):
        return None
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero((data == ord(delimiter)) | (data == ord("\n")))
    if len(ends) != len(lines) * width or (data[ends[width - 1 :: width]] != ord("\n")).any():
        return None
    starts = np.append(0, ends[:-1] + 1)
    return Buffer(data, starts, ends - starts)


def _csv_columns(
    lines: list[bytes], width: int, delimiter: bytes, quotes: bool, selected: list[int], blank: int
) -> list[list[bytes]]:
    """The fields of CSV lines, by column."""
    text = b"\n".join(lines)
    plain = not quotes or not (b'"' in text or b"\r" in text or text.count(b"\n") != max(len(lines) - 1, 0))
    rows = [line.split(delimiter) for line in lines] if plain else [_split(line, delimiter) for line in lines]
    wanted = width
    if selected:
        rows = [[row[i] for i in selected if i < len(row)] for row in rows]
        wanted = len(selected)
    for i, row in enumerate(rows):
        have = len(row) if lines[i] else blank
        if have != wanted:
            raise invalid(f"Expect {wanted} fields but have {have} in record {i}")
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(wanted)]


def _split(line: bytes, delimiter: bytes) -> list[bytes]:
    """One line with quoted fields. A field in quotes may hold anything; quotes inside are doubled."""
    fields: list[bytes] = []
    at, end = 0, len(line)
    while True:
        if line[at : at + 1] == b'"':
            stop, parts = at + 1, []
            while True:
                quote = line.find(b'"', stop)
                if quote < 0:
                    raise invalid("Quoted field has to end with quote followed by delim or end")
                parts.append(line[stop:quote])
                if line[quote + 1 : quote + 2] != b'"':
                    break
                stop = quote + 2
            at = quote + 1
            if at < end and line[at : at + 1] != delimiter:
                raise invalid("Quote inside a string has to be escaped by another quote")
            fields.append(b'"'.join(parts))
        else:
            stop = line.find(delimiter, at)
            field = line[at : stop if stop >= 0 else end]
            if b'"' in field or b"\n" in field or b"\r" in field:
                raise invalid("Unquoted fields cannot have quotes/CRLFs inside")
            fields.append(field)
            at += len(field)
        if at >= end:
            return fields
        at += 1
        if at == end:
            return [*fields, b""]


def _csv_column(i: int, column: list[bytes], dtype: DType, default: Array, na: bytes) -> Array:
    """The fields of column `i` as values; the default where they are empty or `na`."""
    absent = [r for r, field in enumerate(column) if not field or field == na] if b"" in column or na else []
    if absent:
        if not default.size:
            raise invalid(f"Field {i} is required but missing in record {absent[0]}!")
        column = list(column)
        for r in absent:
            column[r] = b"0"
    result = objects(column) if dtype.name == "string" else _numbers(i, column, dtype)
    if absent:
        result[absent] = default.ravel()[0]
    return result


_HEX = re.compile(rb"\s*([+-]?)0[xX][0-9a-fA-F]+\s*")


def _numbers(i: int, column: list[bytes], dtype: DType) -> Array:
    whole = dtype.is_integer
    read: Callable[[bytes], float] = int if whole else float
    try:
        if b"_" not in b"".join(column):  # Python allows underscores between digits, TensorFlow does not
            if not whole:
                with np.errstate(over="ignore"):
                    return np.fromiter(map(float, column), np.float64, len(column)).astype(dtype.np_dtype)
            return np.fromiter(map(int, column), dtype.np_dtype, len(column))
    except (ValueError, OverflowError):
        pass
    out = np.empty(len(column), dtype.np_dtype)
    for r, field in enumerate(column):
        try:
            if b"_" in field:
                raise ValueError
            out[r] = float.fromhex(field.decode()) if not whole and _HEX.fullmatch(field) else read(field)
        except (ValueError, OverflowError):
            text = field.decode(errors="replace")
            raise invalid(f"Field {i} in record {r} is not a valid {c_name(dtype)}: {text}") from None
    return out


@export("io.decode_csv", "decode_csv")
def decode_csv(
    records: TensorLike,
    record_defaults: Sequence[TensorLike],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """The columns of CSV lines.

    `record_defaults` has one entry per column: its type, and the value of empty fields; an empty list of a
    type (`tf.constant([], tf.float32)`) makes the field required.
    """
    if not isinstance(record_defaults, (list, tuple)):
        raise TypeError(
            f"Expected list for 'record_defaults' argument to 'DecodeCSV' Op, not {record_defaults}."
        )
    if select_cols is not None:
        if any(b <= a for a, b in pairwise(select_cols)):
            raise ValueError("select_cols is not strictly increasing.")
        if select_cols and select_cols[0] < 0:
            raise ValueError("select_cols contains negative values.")
        if len(select_cols) != len(record_defaults):
            raise ValueError("Length of select_cols and record_defaults do not match.")
    return apply_list(
        "DecodeCSV",
        records,
        [_default_of(d) for d in record_defaults],
        field_delim=field_delim,
        use_quote_delim=use_quote_delim,
        na_value=na_value,
        select_cols=select_cols,
        name=name,
    )


def _default_of(value: TensorLike) -> TensorLike:
    """The default of a column; a type stands for a required field of that type."""
    return np.zeros(0, value.np_dtype) if isinstance(value, DType) else value


not_differentiable("DecodeCSV")
