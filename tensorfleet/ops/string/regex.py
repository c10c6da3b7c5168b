"""Strings matched against patterns, and rewritten by them.

RE2 runs the patterns, as in TensorFlow: the syntax, the matches and the errors are the same. Its time grows linearly with
the text, whatever pattern a client sends; Python's `re` can take exponentially long.

A call from Python into RE2 costs more than most matches, so many strings are matched as the lines of one text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import re2

from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.packed_strings import Strings, strings_in, together
from tensorfleet.kernels.string_buffers import ZEROS, Buffer
from tensorfleet.ops.common import same_as_input
from tensorfleet.ops.samples import case
from tensorfleet.ops.string.elements import each, invalid

_SEVERAL = 8  # strings that are sooner matched as one text
_PATTERNS = 128  # that are kept compiled, each with at most 8 MB of states; RE2's module keeps as many
_Template = list[bytes | int]
# Parts of a pattern that mean something else among lines: the ends of the text, any byte, a literal up to the end,
# and flags that change what `^` and `$` match.
_NOT_BY_LINES = re.compile(rb"\\[AzCQ]|\(\?(?![isU]*[:)]|P?<)")


@functools.lru_cache(_PATTERNS)
def compiled(pattern: bytes) -> Any:
    """A compiled pattern; InvalidArgumentError when RE2 refuses it."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as e:
        reason = e.args[0]
        text, reason = (t.decode(errors="replace") if isinstance(t, bytes) else t for t in (pattern, reason))
        raise invalid(f"Invalid pattern: {text}, error: {reason}") from None


@functools.lru_cache(_PATTERNS)
def _compiled_for_lines(pattern: bytes, whole: bool) -> Any:
    """A pattern whose matches stay within one line of a text; None when lines would be matched differently alone.

    With `whole`, a match is a whole line.
    """
    if _NOT_BY_LINES.search(pattern):
        return None
    options = re2.Options()
    options.log_errors = False
    options.never_nl = True
    try:
        return re2.compile(b"(?m:^(?:%s)$)" % pattern if whole else b"(?m:%s)" % pattern, options)
    except re2.error:  # a large pattern may be too large now
        return None


def _lines(strings: Strings) -> bytes | None:
    """Strings as the lines of one text; None when one of them is several lines."""
    text = b"\n".join(strings.objects.tolist())
    return text if text.count(b"\n") == strings.size - 1 else None


def _matches(strings: Any, pattern: bytes) -> np.ndarray:
    match, many = compiled(pattern).fullmatch, together(strings, _SEVERAL)
    if many is not None and (result := _matched_by_lines(many, pattern)) is not None:
        return result
    return each(lambda s: match(s) is not None, strings, np.bool_)


def _matched_by_lines(strings: Strings, pattern: bytes) -> np.ndarray | None:
    """Whether each of many strings matches; None when they cannot be matched as one text."""
    regex = _compiled_for_lines(pattern, whole=True)
    text = None if regex is None else _lines(strings)
    if text is None:
        return None
    begins = np.zeros(len(text) + 1, np.bool_)
    begins[[match.start() for match in regex.finditer(text)]] = True
    starts = np.cumsum(strings.lengths + 1) - strings.lengths - 1
    matched: np.ndarray = begins[starts].reshape(strings.shape)
    return matched


def _found(regex: Any, text: bytes) -> Iterator[tuple[int, int, Any]]:
    """The start, the end and the groups of each match that RE2 would replace."""
    position, last = 0, -1
    for match in regex.finditer(text):
        position, end = match.span()
        if position == end:  # where RE2 goes on behind an empty match differs from Python
            break
        yield position, end, match
        last = end
    else:
        return
    yield from _found_from(regex, text, position, last)


def _found_from(regex: Any, text: bytes, position: int, last: int) -> Iterator[tuple[int, int, Any]]:
    """The matches from a position on, one of which may be empty; the match before ended at `last`.

    An empty match right behind another does not count, and the search goes on behind the next character.
    """
    while position <= len(text) and (match := regex.search(text, position)) is not None:
        start, end = match.span()
        if start == end == last:
            position = last + _character_size(text, last)
            continue
        yield start, end, match
        position = last = end


def _character_size(text: bytes, at: int) -> int:
    """The bytes of the character at a place; 1 where the text is not UTF-8."""
    first = text[at] if at < len(text) else 0
    size = 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0)
    try:
        return len(text[at : at + size].decode().encode()) or 1
    except UnicodeDecodeError:
        return 1


def _replaced(strings: Any, pattern: bytes, rewrite: bytes, everywhere: bool) -> Any:
    regex, (template, valid) = compiled(pattern), _parsed(rewrite)
    missing = any(isinstance(piece, int) and piece > regex.groups for piece in template)
    if missing or not (valid or everywhere):
        return strings  # names a group that is not there, or nothing at all
    many = together(strings, _SEVERAL) if everywhere and b"\n" not in rewrite else None
    if many is not None and (result := _rewritten_by_lines(many, pattern, template)) is not None:
        return result
    return each(lambda s: _rewritten(s, regex, template, everywhere), strings)


def _rewritten_by_lines(strings: Strings, pattern: bytes, template: _Template) -> Any:
    """Many strings rewritten; None when they cannot be rewritten as one text."""
    regex = _compiled_for_lines(pattern, whole=False)
    text = None if regex is None else _lines(strings)
    if text is None:
        return None
    data = np.frombuffer(_rewritten(text, regex, template, True) + b"\n" + ZEROS, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    starts = np.append(0, ends[:-1] + 1)
    return strings_in(Buffer(data, starts, ends - starts), strings.shape)


def _rewritten(text: bytes, regex: Any, template: _Template, everywhere: bool) -> bytes:
    pieces: list[bytes] = []
    texts = [p for p in template if isinstance(p, bytes)]
    literal = b"".join(texts) if len(texts) == len(template) else None
    behind = 0
    for start, end, match in _found(regex, text):
        pieces.append(text[behind:start])
        pieces.append(_expanded(template, match) if literal is None else literal)
        behind = end
        if not everywhere:
            break
    pieces.append(text[behind:])
    return b"".join(pieces)


def _expanded(template: _Template, match: Any) -> bytes:
    return b"".join([(match[p] or b"") if isinstance(p, int) else p for p in template])


def _parsed(rewrite: bytes) -> tuple[_Template, bool]:
    """A rewrite string as literal pieces and the numbers of groups; whether all of it is valid."""
    pieces: _Template = []
    for part in re.findall(rb"\\.|\\|[^\\]+", rewrite, re.DOTALL):
        if part[:1] != b"\\":
            pieces.append(part)
        elif part[1:].isdigit():
            pieces.append(int(part[1:]))
        elif part == b"\\\\":
            pieces.append(b"\\")
        else:
            return pieces, False
    return pieces, True


_AB = np.array([b"ab", b"b\n", b"", "日a".encode()], object)


@op(
    "StaticRegexFullMatch",
    "input: string -> output: bool",
    "pattern: string",
    shape=same_as_input,
    host=True,
    packed=True,
    examples=[case(_AB, pattern=b"a.*"), case(_AB, pattern=b"..")],
)
def _static_match(ctx: Any, strings: Any, *, pattern: bytes) -> Any:
    return _matches(strings, pattern)


def _scalar(value: Any, what: str) -> bytes:
    array = np.asarray(value, object)
    if array.ndim:
        shape = ",".join(str(d) for d in array.shape)
        raise invalid(f"{what} must be scalar, but received [{shape}]")
    text: bytes = array.item()
    return text


@op(
    "RegexFullMatch",
    "input: string, pattern: string[0] -> output: bool",
    shape=same_as_input,
    host=True,
    packed=True,
    examples=[case(_AB, np.array(b"[ab]+", object))],
)
def _match(ctx: Any, strings: Any, pattern: Any) -> Any:
    return _matches(strings, _scalar(pattern, "Pattern"))


@export("strings.regex_full_match")
def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """Whether each string as a whole matches a pattern of RE2."""
    if isinstance(pattern, (str, bytes)):
        return apply("StaticRegexFullMatch", input, pattern=pattern, name=name)
    return apply("RegexFullMatch", input, pattern, name=name)


@op(
    "StaticRegexReplace",
    "input: string -> output: string",
    "pattern: string; rewrite: string; replace_global: bool = true",
    shape=same_as_input,
    host=True,
    packed=True,
    examples=[
        case(_AB, pattern=b"(a)", rewrite=rb"<\1>"),
        case(_AB, pattern=b"x*", rewrite=b"-"),
        case(_AB, pattern=b".", rewrite=b"", replace_global=False),
    ],
)
def _static_replace(ctx: Any, strings: Any, *, pattern: bytes, rewrite: bytes, replace_global: bool) -> Any:
    return _replaced(strings, pattern, rewrite, replace_global)


@op(
    "RegexReplace",
    "input: string, pattern: string[0], rewrite: string[0] -> output: string",
    "replace_global: bool = true",
    shape=same_as_input,
    host=True,
    packed=True,
    examples=[case(_AB, np.array(b"b", object), np.array(rb"[\0]", object))],
)
def _replace(ctx: Any, strings: Any, pattern: Any, rewrite: Any, *, replace_global: bool) -> Any:
    return _replaced(strings, _scalar(pattern, "Pattern"), _scalar(rewrite, "Rewrite"), replace_global)


@export("strings.regex_replace", "regex_replace")
def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    r"""Strings with what matches a pattern of RE2 replaced, where `\1` to `\9` stand for its groups."""
    if isinstance(pattern, (str, bytes)) and isinstance(rewrite, (str, bytes)):
        return apply(
            "StaticRegexReplace",
            input,
            pattern=pattern,
            rewrite=rewrite,
            replace_global=replace_global,
            name=name,
        )
    return apply("RegexReplace", input, pattern, rewrite, replace_global=replace_global, name=name)


not_differentiable("StaticRegexFullMatch", "RegexFullMatch", "StaticRegexReplace", "RegexReplace")
