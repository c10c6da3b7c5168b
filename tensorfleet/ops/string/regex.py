"""Strings matched against patterns, and rewritten by them.

The patterns are RE2's, read as Python's `re` reads them after a translation: text is UTF-8, `$` is the very
end, and what RE2 lacks (backward references, looking ahead) is refused.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.packed_strings import Strings, strings_in, together
from tensorfleet.kernels.string_buffers import Buffer
from tensorfleet.ops.common import same_as_input
from tensorfleet.ops.samples import case
from tensorfleet.ops.string.elements import each, invalid

_SEVERAL = 8  # strings that are sooner rewritten as one
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
# Bytes that are no UTF-8, as Python decodes them: a dot does not match them.
_BROKEN = "\udc80-\udcff"


class _Refused(Exception):
    """A pattern that RE2 does not take; what it says."""


class _Translation:
    """One pattern on its way from RE2 to Python."""

    def __init__(self, pattern: str) -> None:
        self.rest = pattern
        self.made: list[str] = []
        self.flags: list[set[str]] = [set()]
        self.closing = [0]  # how many parentheses each group needs beside its own

    def run(self) -> str:
        """The translated pattern."""
        repeated = False
        while self.rest:
            c = self.rest[0]
            if c in "*+?":
                self._check_repetition(repeated)
                repeated = True
                self._take(2 if self.rest[1:2] == "?" else 1)
                continue
            repeated = False
            if c == "\\":
                self._escape()
            elif c == "[":
                self._class()
            elif c == "(":
                self._open()
            elif c == ")":
                self._close()
            elif c == "$":
                self._put("$" if "m" in self.flags[-1] else "\\Z")
            elif c == ".":
                self._put(f"[^{_BROKEN}]" if "s" in self.flags[-1] else f"[^\\n{_BROKEN}]")
            else:
                self._take(1)
        if len(self.flags) > 1:
            raise _Refused("missing )")
        return "".join(self.made) + ")" * self.closing[-1]

    def _take(self, count: int) -> None:
        self.made.append(self.rest[:count])
        self.rest = self.rest[count:]

    def _put(self, text: str, count: int = 1) -> None:
        self.made.append(text)
        self.rest = self.rest[count:]

    def _check_repetition(self, repeated: bool) -> None:
        if repeated:
            raise _Refused(f"bad repetition operator: {self.rest[0] * 2}")
        if not self.made or self.made[-1] in ("(", "|") or self.made[-1].startswith("(?"):
            raise _Refused(f"no argument for repetition operator: {self.rest[0]}")

    def _escape(self, in_class: bool = False) -> None:
        c = self.rest[1:2]
        if c == "Q":
            literal, _, rest = self.rest[2:].partition("\\E")
            self.made.append(re.escape(literal))
            self.rest = rest
        elif c in ("p", "P"):
            self._category(c == "P", in_class)
        elif c == "x" and self.rest[2:3] == "{":
            digits, _, rest = self.rest[3:].partition("}")
            self.made.append(f"\\U{int(digits, 16):08x}")
            self.rest = rest
        elif c == "z":
            self._put("\\Z", 2)
        elif c == "C":
            self._put("[\\s\\S]", 2)
        elif (c.isdigit() and c != "0") or c in ("Z", "k") or not c:
            raise _Refused(f"invalid escape sequence: \\{c}" if c else "trailing \\")
        else:
            self._take(2)

    def _category(self, negated: bool, in_class: bool) -> None:
        if self.rest[2:3] == "{":
            name, _, rest = self.rest[3:].partition("}")
        else:
            name, rest = self.rest[2:3], self.rest[3:]
        if name.startswith("^"):
            name, negated = name[1:], not negated
        ranges = _ranges(name, negated)
        if not ranges:
            raise _Refused(f"invalid character class range: \\{'P' if negated else 'p'}{{{name}}}")
        self.made.append(ranges if in_class else f"[{ranges}]")
        self.rest = rest

    def _class(self) -> None:
        start = self.rest
        self._take(2 if self.rest[1:2] == "^" else 1)
        if self.rest[:1] == "]":
            self._put("\\]")
        while self.rest[:1] != "]":
            if not self.rest:
                raise _Refused(f"missing ]: {start}")
            named = re.match(r"\[:(\^?)(\w+):\]", self.rest)
            if named and named.group(2) in _POSIX:
                inside = _POSIX[named.group(2)]
                self._put(_complement(inside) if named.group(1) else inside, named.end())
            elif self.rest[0] == "\\":
                self._escape(in_class=True)
            elif self.rest[0] == "[":
                self._put("\\[")
            else:
                self._take(1)
        self._take(1)

    def _open(self) -> None:
        flags = re.match(r"\(\?([imsU-]*)([:)])", self.rest)
        if flags:
            on, _, off = flags.group(1).partition("-")
            if "U" in on + off:
                raise _Refused("invalid perl operator: (?U")
            wanted = (self.flags[-1] | set(on)) - set(off)
            both = on + (f"-{off}" if off else "")
            self._put(f"(?{both}:", flags.end())
            if flags.group(2) == ":":
                self.flags.append(wanted)
                self.closing.append(0)
            else:  # holds until the group ends
                self.flags[-1] = wanted
                self.closing[-1] += 1
            return
        named = re.match(r"\(\?P<\w+>", self.rest)
        if self.rest.startswith("(?") and not named:
            raise _Refused(f"invalid perl operator: {self.rest[:3]}")
        self.flags.append(set(self.flags[-1]))
        self.closing.append(0)
        self._take(named.end() if named else 1)

    def _close(self) -> None:
        if len(self.flags) == 1:
            raise _Refused("unexpected )")
        self.flags.pop()
        self._put(")" * self.closing.pop() + ")")


@functools.cache
def _ranges(category: str, negated: bool) -> str:
    """The characters of a Unicode category as the inside of a character class."""
    inside = [unicodedata.category(chr(i)).startswith(category) != negated for i in range(sys.maxunicode + 1)]
    edges = np.flatnonzero(np.diff(np.array([False, *inside, False]).astype(np.int8)))
    if not category or not len(edges) or (negated and all(inside)):
        return ""
    pairs = edges.reshape(-1, 2)
    return "".join(f"\\U{a:08x}-\\U{b - 1:08x}" for a, b in pairs.tolist())


def _complement(inside: str) -> str:
    """The characters that are not in a class, as the inside of a class."""
    taken = re.compile(f"[{inside}]")
    free = [i for i in range(128) if not taken.match(chr(i))]
    return "".join(f"\\x{i:02x}" for i in free) + "\\x80-\\U0010ffff"


@functools.lru_cache(256)
def compiled(pattern: bytes) -> re.Pattern[str]:
    """A pattern of RE2 as one of Python; InvalidArgumentError when it is none."""
    text = pattern.decode(errors="surrogateescape")
    try:
        return re.compile(_Translation(text).run(), re.ASCII)
    except (_Refused, re.error, ValueError) as e:
        reason = f"{e}: {text}" if str(e) == "missing )" else str(e)
        raise invalid(f"Invalid pattern: {text}, error: {reason}") from None


# Parts of a pattern that match at least one letter, and no zero but where "[^" is.
_NAMES = r"\[:(?:alnum|alpha|blank|digit|lower|punct|space|upper):\]"
_CLASS = rf"\[\^?(?:[^][\\\x00^]|\\[dws.\[\]\\/-]|{_NAMES})+\]"
_PART = rf"(?:[^][\\.^$*+?{{}}()|\x00]|\\[dws.\[\]()*+?{{}}|^$/-]|\.|{_CLASS})"
_APART, _MAYBE_EMPTY = (re.compile(rf"{_PART}{q}(?:\|?{_PART}{q})*") for q in (r"\+?", r"[*+?]?"))


@functools.lru_cache(256)
def _compiled_apart(pattern: bytes, whole: bool = False) -> re.Pattern[str] | None:
    """A pattern for strings with zeros between them, which are in no match; None when it may match nothing at all.

    With `whole`, a match is a zero and all of the string behind it, which may be empty.
    """
    text = pattern.decode(errors="surrogateescape")
    if not (_MAYBE_EMPTY if whole else _APART).fullmatch(text):
        return None
    made = _Translation(text).run().replace("[^", "[^\\x00")
    return re.compile(f"\\x00(?:{made})(?=\\x00)" if whole else made, re.ASCII)


def _text(s: bytes) -> str:
    return s.decode(errors="surrogateescape")


def _matches(strings: Any, pattern: bytes) -> np.ndarray:
    match, many = compiled(pattern).fullmatch, together(strings)
    if many is not None and (made := _matched_together(many, pattern)) is not None:
        return made
    array = np.asarray(strings, object)
    found = (match(t) is not None for t in _texts(array))
    return np.fromiter(found, np.bool_, array.size).reshape(array.shape)


def _matched_together(strings: Strings, pattern: bytes) -> np.ndarray | None:
    """Whether each of many strings matches, asked of all as one; None when that might not be the same."""
    regex = _compiled_apart(pattern, True)
    buffer = None if regex is None else _without_zeros(strings)
    if regex is None or buffer is None:
        return None
    data = b"\0" + buffer.data.tobytes()
    if not data.isascii():
        return None
    made = np.zeros(len(data), np.bool_)
    made[list(map(re.Match.start, regex.finditer(data.decode())))] = True
    return made[buffer.starts].reshape(strings.shape)


def _without_zeros(strings: Strings) -> Buffer | None:
    """Strings with zeros between them, if there are none inside of them."""
    buffer = strings.apart()
    return buffer if np.count_nonzero(buffer.data) == buffer.lengths.sum() else None


def _texts(strings: np.ndarray) -> Iterator[str]:
    """All strings, decoded."""
    flat = strings.ravel().tolist()
    plain = all(map(bytes.isascii, flat))
    return map(bytes.decode if plain else _text, flat)


def _replaced(strings: Any, pattern: bytes, rewrite: bytes, everywhere: bool) -> np.ndarray:
    regex, (template, whole) = compiled(pattern), _rewrite(rewrite)
    missing = any(isinstance(piece, int) and piece > regex.groups for piece in template)
    if missing or not (whole or everywhere):
        return strings  # names a group that is not there, or nothing at all
    made = _rewritten_at_once(strings, pattern, template) if everywhere else None
    return each(lambda s: _rewritten(s, regex, template, everywhere), strings) if made is None else made


def _rewritten_at_once(strings: Any, pattern: bytes, template: list) -> Any:
    """Many strings rewritten as one, with zeros between them; None when that might not be the same."""
    rewrite = "".join([f"\\g<{p}>" if isinstance(p, int) else p.replace("\\", "\\\\") for p in template])
    many = together(strings, _SEVERAL)
    regex = None if many is None or "\0" in rewrite else _compiled_apart(pattern)
    if many is None or regex is None:
        return None
    if isinstance(strings, np.ndarray):
        return _rewritten_objects(strings, regex, rewrite)
    return _rewritten_together(many, regex, rewrite)


def _rewritten_objects(strings: np.ndarray, regex: re.Pattern, rewrite: str) -> np.ndarray | None:
    data = b"\0".join(strings.ravel().tolist())
    if data.count(b"\0") != strings.size - 1:
        return None
    made = regex.sub(rewrite, _text(data)).encode(errors="surrogateescape").split(b"\0")
    return np.fromiter(made, object, strings.size).reshape(strings.shape)


def _rewritten_together(strings: Strings, regex: re.Pattern, rewrite: str) -> Any:
    buffer = _without_zeros(strings)
    if buffer is None:
        return None
    text = _text(b"\0" + buffer.data.tobytes())
    made = np.frombuffer(regex.sub(rewrite, text).encode(errors="surrogateescape"), np.uint8)
    # As many zeros as before are between them.
    zeros = np.flatnonzero(made == 0)
    before = buffer.starts - (np.cumsum(buffer.lengths) - buffer.lengths)
    starts = zeros[before] + 1
    return strings_in(Buffer(made, starts, zeros[before + 1] - starts), strings.shape)


def _rewrite(rewrite: bytes) -> tuple[list[str | int], bool]:
    """A rewrite string as literal pieces and the numbers of groups; whether all of it made sense."""
    pieces: list[str | int] = []
    for part in re.findall(r"\\.|\\|[^\\]+", _text(rewrite), re.DOTALL):
        if part[0] != "\\":
            pieces.append(part)
        elif part[1:].isdigit():
            pieces.append(int(part[1:]))
        elif part == "\\\\":
            pieces.append("\\")
        else:
            return pieces, False
    return pieces, True


class _EmptyMatch(Exception):
    """A pattern has matched nothing at all."""


def _substituted(template: list, found: re.Match[str]) -> str:
    if found.end() == found.start():
        raise _EmptyMatch
    return "".join([(found.group(p) or "") if isinstance(p, int) else p for p in template])


def _rewritten(s: bytes, regex: re.Pattern[str], template: list, everywhere: bool) -> bytes:
    text = _text(s)
    if everywhere:
        try:
            return regex.sub(functools.partial(_substituted, template), text).encode(errors="surrogateescape")
        except _EmptyMatch:
            pass  # where RE2 goes on behind one differs from Python
    made, position, last = [], 0, -1
    while True:
        found = regex.search(text, position)
        if found is None:
            break
        made.append(text[position : found.start()])
        if found.end() == found.start() == last:  # nothing, right behind a match: not another match
            if last == len(text):
                position = last
                break
            made.append(text[last])
            position, last = last + 1, -1
            continue
        made += [(found.group(p) or "") if isinstance(p, int) else p for p in template]
        position = last = found.end()
        if not everywhere:
            break
    made.append(text[position:])
    return "".join(made).encode(errors="surrogateescape")


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
    return array.item()


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
    """Strings with what matches a pattern of RE2 replaced, where `\\1` to `\\9` stand for its groups."""
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
