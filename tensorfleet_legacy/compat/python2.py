"""Python 2 as Python 3: the text of a script that today's Python cannot parse, rewritten line for line.

Only what Python 3 has no grammar for is changed here; no line moves, so tracebacks stay right. What a program in
Python 2 means by `/`, `keys()` or `range` is the business of `python2_scripts`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\f\r]+|\\\r?\n)|(?P<comment>\#[^\n]*)|(?P<newline>\n)
    |(?P<string>(?i:[ub]?r?)(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'(?:\\.|[^\\'\n])*'|"(?:\\.|[^\\"\n])*"))
    |(?P<number>0[xX][0-9a-fA-F]+[lL]?|0[bBoO][0-7]+[lL]?|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[jJlL]?)
    |(?P<name>[^\W\d]\w*)
    |(?P<operator><>|>>=|<<=|>>|<<|\*\*=|//=|\*\*|//|[-+*/%&|^=<>!]=|.)""",
    re.VERBOSE | re.DOTALL,
)
_HEADERS = {"if", "elif", "else", "while", "for", "try", "except", "finally", "with", "def", "class"}
_PRINT_IS_A_FUNCTION = re.compile(
    r"^from\s+__future__\s+import\s*(\([^)]*|[^\n]*)\bprint_function\b", re.MULTILINE
)
_TAB = 8
PARTS = "parts_"  # begins the names of parameters that are taken apart


@dataclass(frozen=True)
class Token:
    """A piece of a statement; `depth` counts the brackets around it."""

    kind: str
    text: str
    start: int
    end: int
    depth: int


Statement = list[Token]
Edit = tuple[int, int, str]  # from, to, what to put there


def parse(source: str, path: str) -> tuple[ast.Module, bool]:
    """The program, and whether it is one in Python 2. Raises Python 3's SyntaxError for what is neither."""
    try:
        return ast.parse(source, path), False
    except SyntaxError as error:
        for is_old, translate in enumerate((free_async, to_python_3)):
            try:
                return ast.parse(translate(source), path), bool(is_old)
            except SyntaxError:
                continue
        raise error.with_traceback(None) from None


def to_python_3(source: str) -> str:
    """The same program in Python 3's grammar; the same text where there is nothing to change."""
    edits = [*_indents(source), *_async_names(source)]
    keep_print = _PRINT_IS_A_FUNCTION.search(source) is not None
    for statement in _statements(source):
        first = statement[0].text
        if first in _REWRITTEN and not (first == "print" and keep_print):
            edits += _REWRITTEN[first](statement)
        edits += _pieces(statement)
        edits += _lambdas(statement)
    return _edited(source, edits)


def free_async(source: str) -> str:
    """The same program, where `async` is a name as it was until Python 3.6."""
    return _edited(source, list(_async_names(source)))


def _edited(source: str, edits: list[Edit]) -> str:
    for start, end, text in sorted(edits, key=lambda edit: edit[:2], reverse=True):
        source = source[:start] + text + "\n" * source.count("\n", start, end) + source[end:]
    return source


def _async_names(source: str) -> Iterator[Edit]:
    """Spells the name with another a: Python takes it for the same name, but not for the word of its grammar."""
    for statement in _statements(source):
        for token, following in zip(statement, [*statement[1:], None], strict=True):
            if token.text == "async" and (following is None or following.text not in ("def", "for", "with")):
                yield token.start, token.start + 1, "\N{FULLWIDTH LATIN SMALL LETTER A}"


def _tokens(source: str) -> Iterator[Token]:
    depth = 0
    for match in _TOKEN.finditer(source):
        kind, text = str(match.lastgroup), match[0]
        if kind == "operator" and text in ")]}":
            depth = max(0, depth - 1)
        yield Token(kind, text, match.start(), match.end(), depth)
        if kind == "operator" and text in "([{":
            depth += 1


def _statements(source: str) -> Iterator[Statement]:
    """The simple statements and the headers of blocks, without blanks and comments."""
    statement: Statement = []
    lambdas = 0
    for token in _tokens(source):
        if token.kind in ("blank", "comment") or (token.kind == "newline" and token.depth):
            continue
        ends = token.kind == "newline" or (token.depth == 0 and token.text == ";")
        if token.depth == 0 and token.text == ":":
            ends = bool(statement) and statement[0].text in _HEADERS and not lambdas
            lambdas = max(0, lambdas - 1)
        lambdas += token.depth == 0 and token.text == "lambda"
        if not ends:
            statement.append(token)
            continue
        if statement:
            yield statement
        statement, lambdas = [], 0
    if statement:
        yield statement


def _indents(source: str) -> Iterator[Edit]:
    """Tabs at the beginning of lines reach to the next column of eight, whatever Python 3 thinks of it."""
    at_start = True
    for token in _tokens(source):
        if at_start and token.kind == "blank" and "\t" in token.text:
            yield token.start, token.end, token.text.expandtabs(_TAB)
        at_start = token.kind == "newline"


def _commas(tokens: Statement) -> list[int]:
    return [i for i, token in enumerate(tokens) if token.text == "," and token.depth == 0]


def _closing(tokens: Statement, opening: int) -> int:
    """Where the bracket that `tokens[opening]` opens is closed."""
    depth = tokens[opening].depth
    return next((i for i in range(opening + 1, len(tokens)) if tokens[i].depth == depth), len(tokens))


def _print(statement: Statement) -> list[Edit]:
    word, *rest = statement
    if not rest:
        return [(word.end, word.end, "()")]
    if rest[0].text in ("=", ".") or (rest[0].text == "(" and _closing(rest, 0) == len(rest) - 1):
        return []
    more = rest[-1].text == ","
    if rest[0].text == ">>":
        return _print_to(word, rest[1:], more)
    end = ' end=" ")' if more else ")"
    return [(word.end, rest[0].start, "("), (rest[-1].end, rest[-1].end, end)]


def _print_to(word: Token, rest: Statement, more: bool) -> list[Edit]:
    """`print >>file, values`, with the values after the file as in the statement."""
    comma = next(iter(_commas(rest)), len(rest))
    end = rest[-1].end
    edits = [(word.end, rest[0].start, "(file=")]
    if comma + 1 >= len(rest):
        return [*edits, (rest[comma - 1].end, end, ")")]
    values = ', end=" ", *(' if more else ", *("
    return [*edits, (rest[comma].start, rest[comma + 1].start, values), (end, end, "))" if more else ",))")]


def _exec(statement: Statement) -> list[Edit]:
    word, *rest = statement
    if not rest or (rest[0].text == "(" and _closing(rest, 0) == len(rest) - 1):
        return []
    places = [(token.start, token.end, ",") for token in rest if token.text == "in" and token.depth == 0]
    return [(word.end, rest[0].start, "("), *places[:1], (rest[-1].end, rest[-1].end, ")")]


def _except(statement: Statement) -> list[Edit]:
    return [(statement[i].start, statement[i].end, " as ") for i in _commas(statement)[:1]]


def _raise(statement: Statement) -> list[Edit]:
    commas = [statement[i] for i in _commas(statement)]
    if not commas:
        return []
    end = statement[-1].end
    middle = [(comma.start, comma.end, ").with_traceback(") for comma in commas[1:2]]
    return [(commas[0].start, commas[0].end, "("), *middle, (end, end, ")")]


def _def(statement: Statement) -> list[Edit]:
    """`def f(a, (b, c))` has `b, c` as the annotation of a parameter that `python2_scripts` takes apart."""
    edits: list[Edit] = []
    for i, token in enumerate(statement[3:], 3):
        if token.text == "(" and token.depth == 1 and statement[i - 1].text in ("(", ","):
            edits.append((token.start, token.start, f"{PARTS}{i}: "))
    return edits


_REWRITTEN: dict[str, Callable[[Statement], list[Edit]]] = {
    "print": _print,
    "exec": _exec,
    "except": _except,
    "raise": _raise,
    "def": _def,
}


def _pieces(statement: Statement) -> Iterator[Edit]:
    """Numbers, strings and operators that are written otherwise now."""
    quoted = False
    for token in statement:
        text = token.text
        if text == "<>":
            yield token.start, token.end, "!="
        elif text == "`":
            quoted = not quoted
            yield token.start, token.end, "repr(" if quoted else ")"
        elif token.kind == "number" and (octal := re.fullmatch(r"0([0-7]*[1-7][0-7]*)[lL]?", text)):
            yield token.start, token.end, f"0o{octal[1]}"
        elif token.kind == "number" and text[-1] in "lL":
            yield token.start, token.end, text[:-1]
        elif token.kind == "string" and text[:2].lower() == "ur":
            yield token.start, token.start + 1, ""


def _lambdas(statement: Statement) -> Iterator[Edit]:
    """`lambda a, (b, c): ...` takes its argument apart in a comprehension over that alone."""
    for i, token in enumerate(statement):
        if token.text != "lambda":
            continue
        ends = (j for j, t in enumerate(statement) if j > i and t.text == ":" and t.depth == token.depth)
        colon = next(ends, i)
        begins = [j for j in range(i + 1, colon) if _begins_tuple(statement, j, token.depth)]
        if not begins or colon + 1 >= len(statement):
            continue
        end = colon + 2
        while end < len(statement) and not _ends_lambda(statement[end], token.depth):
            end += 1
        taken = []
        for j in begins:
            close = _closing(statement, j)
            taken.append(" ".join(part.text for part in statement[j : close + 1]))
            yield statement[j].start, statement[close].end, f"{PARTS}{j}"
        yield statement[colon].end, statement[colon].end, " [("
        given = ", ".join(f"{PARTS}{j}" for j in begins)
        last = statement[end - 1].end
        yield last, last, f") for {', '.join(taken)}, in [({given},)]][0]"


def _begins_tuple(statement: Statement, at: int, depth: int) -> bool:
    """Whether a parameter that is a tuple begins at a place."""
    token = statement[at]
    return token.text == "(" and token.depth == depth and statement[at - 1].text in ("lambda", ",")


def _ends_lambda(token: Token, depth: int) -> bool:
    return token.depth < depth or (token.depth == depth and token.text in (",", "for"))
