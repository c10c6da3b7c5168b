"""Functions of strings: TensorFlow's values and errors."""

import numpy as np

from tests.peers.programs import agree, refuse_alike, walk, walk_errors

WORDS = [b"", b"a", b"ab", b"abc", b"hello", b"0123456789abcdef", b"x" * 17, b"y" * 33, "é日本".encode()]
LONG = [*WORDS, bytes(range(64)), bytes(range(65)), bytes(range(128)), bytes(range(129)), b"q" * 1000]
TEXTS = [b"hello", b"hello\n", b"", b"aab", "日本".encode(), b"a.b", b"A1_"]
SQUARE = [[b"a", b"b"], [b"c", b"d"]]
SPACED = [b"a  b", b"", b" x ", b"c,d;e"]


def call(name, *args, **kwargs):
    def program(tf):
        f = tf
        for part in name.split("."):
            f = getattr(f, part)
        return f(*args, **kwargs)

    return program


def numbers(words, kind):
    return lambda tf: tf.string_to_number(words, getattr(tf, kind))


AS_STRING = [
    (np.array([1.5, -2.25, 1e10, np.nan, -np.inf]), {}),
    (np.array([1.5, 1e-5]), dict(precision=2)),
    (np.array([1.5, 12345.678]), dict(scientific=True)),
    (np.array([1.5, 12345.678]), dict(scientific=True, precision=3)),
    (np.array([1.5, 1e20, 0.1]), dict(shortest=True)),
    (np.array([0.1, 3], np.float32), dict(shortest=True, precision=3)),
    (np.array([1, 20, -3]), dict(width=5)),
    (np.array([1, 20, -3]), dict(width=5, fill="0")),
    (np.array([1, 20, -3]), dict(width=5, fill="-")),
    (np.array([1, 20, -3]), dict(width=5, fill="+")),
    (np.array([True, False]), dict(width=6)),
    (np.array([1 + 2j, -1.5j]), {}),
    (np.array([1 + 2j]), dict(precision=2, width=8)),
    (np.array([1, 255], np.uint8), {}),
    (np.array([1.5], np.float16), {}),
    (np.float32(3), {}),
]
PATTERNS = [
    *(
        b"h.*o",
        b"a*b",
        b".*",
        b"..",
        b"(?i)A1_",
        b"(?s).*",
        b"hello$",
        b"^hello\\z",
        b"[[:alpha:]]+",
        b"\\pL+",
    ),
    *(
        b"\\p{Lu}.*",
        b"a\\.b",
        b"\\Qa.b\\E",
        b"[[:^alpha:]]*",
        b"\\w+",
        b"[^a-c]*",
        b"(?P<x>a)+b",
        b"a{2}b",
        b"\\d",
    ),
    *(b"\\x{65E5}.", b"hello|aab", b"(?i:HE)llo", b"h(?i)ELLO", b"[\\d_A]+", b"\\C*", b"\\zz", b"", b"[]a]+"),
]
# So many strings that they are matched as the lines of one text; the second list has lines within strings.
MANY = [*TEXTS, b"", b"aaa bbb", b"\xff a\xfe", b"a\0b", b"ba a"]
ONE_LINE = [t for t in MANY if b"\n" not in t]
LINE_PATTERNS = [
    *(b"^a|b$", b"(?m)^a", b"\\Aa", b"a\\z", b"[^a]", b"\\s*", b"(?s).", b"\\b", b"\\B", b"\\W+", b"(?U)a+"),
    *(b"(a|ab)(c|bcd)?", b"(?-s:.)", b"\\Qb", b"x*", b"$", b"^", b"(?i)A", b"(?P<n>a)b", b"\\C", b"\n|a"),
]
REWRITES = [
    (b"x*", b"-"),
    (b"o", b"0"),
    (b"(h)(.)", rb"\2\1"),
    (b"l+", rb"[\0]"),
    (b"a", b"\\\\"),
    (b"a", rb"\3"),
    (b"a", b"\\q"),
    (b".", b"x"),
    (b"a|", b"_"),
    (b"$", b"E"),
    (b"^", b"S"),
    (b"\\b", b"|"),
    (b"(z)?a", rb"<\1>"),
]
VALUES = {
    "bucket": call("string_to_hash_bucket", LONG, 2**62),
    "bucket fast": call("strings.to_hash_bucket_fast", [LONG], 2**62),
    "bucket strong": call("string_to_hash_bucket_strong", LONG, 2**62, [1, 2]),
    "bucket strong small": call("string_to_hash_bucket_strong", LONG, 1000, [-1, 2**62]),
    "fingerprint": lambda tf: [tf.fingerprint(x) for x in (WORDS, [[1, 2], [3, 4]], [[b"a"], [b"b"]], [1.5])],
    "floats": numbers(
        [b"1", b" 1.5 ", b"1e3", b"-inf", b"NaN", b"0x1A", b"+3", b".5", b"5.", b"1e400"], "float32"
    ),
    "doubles": numbers([b"1e300", b"\t2\n"], "float64"),
    "ints": numbers([b"1", b" 5 ", b"-2147483648", b"+7"], "int32"),
    "longs": numbers([b"9223372036854775807"], "int64"),
    **{f"as_string {i}": call("as_string", v, **k) for i, (v, k) in enumerate(AS_STRING)},
    "substr": lambda tf: [
        tf.substr(b"hello", *where)
        for where in ((1, 2), (-3, 2), (1, 100), (5, 1), (1, -1), ([0, 1], [1, 2]))
    ],
    "substr rows": call("substr", [[b"hello", b"world"], [b"abc", b"def"]], [[0], [1]], [[1], [2]]),
    "substr characters": call("strings.substr", "日本é".encode(), [0, -1, 3], [2, 1, 1], unit="UTF8_CHAR"),
    "length": lambda tf: [tf.strings.length(WORDS, unit=u) for u in ("BYTE", "UTF8_CHAR")],
    "case": lambda tf: [
        f([b"aBc", "ÀéSS".encode()], encoding=e)
        for f in (tf.strings.lower, tf.strings.upper)
        for e in ("", "utf-8")
    ],
    "strip": call("string_strip", [b"  a b \t\n", b"\x0b\x0cx", b"", b" \xc2\xa0 "]),
    "base64": lambda tf: [tf.encode_base64(LONG, pad=p) for p in (False, True)],
    "base64 back": call("decode_base64", [b"YQ", b"YQ==", b"YWI", b"YWJj", b"__79", b""]),
    **{f"match {p!r}": call("strings.regex_full_match", TEXTS, p) for p in PATTERNS},
    **{
        f"match {len(texts)} {p!r}": call("strings.regex_full_match", texts, p)
        for p in [*PATTERNS, *LINE_PATTERNS]
        for texts in (MANY, ONE_LINE)
    },
    **{
        f"replace {len(texts)} {p!r}": lambda tf, p=p, texts=texts: [
            tf.regex_replace(texts, p, r) for r in (b"-", rb"<\0>", b"\n", b"")
        ]
        for p in [*PATTERNS, *LINE_PATTERNS]
        for texts in (MANY, ONE_LINE)
    },
    "match tensor": lambda tf: tf.strings.regex_full_match(TEXTS, tf.constant(b"h.*o")),
    **{
        f"replace {p!r} {r!r}": lambda tf, p=p, r=r: [
            tf.regex_replace([b"abxd", b"hello world", b"", b"aaa", "日本é".encode()], p, r, replace_global=g)
            for g in (True, False)
        ]
        for p, r in REWRITES
    },
    "replace tensor": lambda tf: tf.strings.regex_replace(TEXTS, tf.constant(b"l"), tf.constant(b"L")),
    "replace broken": call("regex_replace", [b"\xff\xfea"], ".", "x"),
    "split": lambda tf: [tf.string_split(SPACED, skip_empty=e) for e in (True, False)],
    "split at": lambda tf: [tf.string_split(SPACED, s) for s in (",;", "", "xb")],
    "split delimiter": call("string_split", SPACED, delimiter="b"),
    "split nothing": call("string_split", np.zeros(0, object)),
    "strings.split": lambda tf: [tf.strings.split(SPACED, maxsplit=m) for m in (-1, 0, 1)],
    "strings.split sep": lambda tf: [
        tf.strings.split([b"1<>2<><>3"], sep="<>", maxsplit=m) for m in (-1, 0, 1)
    ],
    "strings.split scalar": call("strings.split", b"a b"),
    "strings.split deep": call("strings.split", [[b"a b", b"c"], [b"", b"d e f"]]),
    **{
        f"reduce_join {k}": call("reduce_join", SQUARE, **k)
        for k in (
            {},
            dict(axis=0),
            dict(axis=-1, separator="."),
            dict(axis=[0, 1]),
            dict(axis=[1, 0]),
            dict(axis=0, keep_dims=True),
            dict(axis=[]),
            dict(reduction_indices=1),
            dict(keepdims=True),
        )
    },
    "reduce_join scalar": call("reduce_join", b"a"),
    "reduce_join unknown": lambda tf: tf.reduce_join(tf.placeholder_with_default(SQUARE, None)),
    "reduce_join nothing": call("reduce_join", np.zeros((2, 0), object), axis=1),
    "segment_join": call("strings.unsorted_segment_join", [b"a", b"b", b"c"], [0, 2, 0], 4, separator=":"),
    "segment_join rows": call("strings.unsorted_segment_join", SQUARE, [0, 0], 1, separator=","),
    "segment_join elements": call("strings.unsorted_segment_join", SQUARE, [[0, 1], [1, 0]], 2),
    "join": lambda tf: [tf.string_join([b"a", [b"b", b"c"]], "-"), tf.strings.join([b"x", b"y"])],
    "format": lambda tf: [
        tf.strings.format("a {} b {}", (tf.range(10), tf.constant(2.5))),
        tf.strings.format("%s", tf.reshape(tf.range(12), [3, 4]), placeholder="%s"),
        tf.strings.format("{}", tf.constant([b"a", b"b"])),
        tf.strings.format("{}", tf.range(10), summarize=-1),
    ],
}


@walk(VALUES)
def test_values(tensorflow, program):
    agree(tensorflow, program)


ERRORS = {
    "number": (numbers([b"1,000"], "float32"), "StringToNumberOp could not correctly convert string: 1,000"),
    "no number": (numbers([b""], "float32"), "StringToNumberOp could not correctly convert string: "),
    "underscore": (numbers([b"1_0"], "float32"), "could not correctly convert string: 1_0"),
    "too large": (numbers([b"2147483648"], "int32"), "could not correctly convert string: 2147483648"),
    "as_string fill": (call("as_string", [1], fill="xy"), "Fill string must be one or fewer characters"),
    "as_string fill q": (call("as_string", [1], fill="q"), 'Fill argument not supported: "q"'),
    "as_string precision": (
        call("as_string", [1], precision=2),
        "precision not supported for datatype int32",
    ),
    "as_string both": (
        call("as_string", [1.5], scientific=True, shortest=True),
        "Cannot select both scientific",
    ),
    "substr": (call("substr", b"hello", 6, 1), "pos 6 out of range for string b'hello' at index 0"),
    "substr shapes": (
        call("substr", [b"a", b"b"], [1, 2, 3], [2, 3, 4]),
        "Dimensions must be equal, but are 2 and 3",
    ),
    "substr unit": (
        call("substr", b"a", 0, 1, unit="foo"),
        "Attr 'unit' of 'Substr' Op passed string 'foo' not in",
    ),
    "case": (call("strings.lower", [b"a"], encoding="latin"), "only utf-8 or '' (no encoding) is supported"),
    "base64": (call("decode_base64", [b"Y Q"]), "Invalid character found in base64."),
    "base64 length": (call("decode_base64", [b"Y"]), "Base64 string length cannot be 1 modulo 4."),
    "buckets": (call("string_to_hash_bucket_fast", WORDS, 0), "less than minimum 1"),
    "key": (call("string_to_hash_bucket_strong", WORDS, 5, [1]), "Key must have 2 elements"),
    "fingerprint": (call("fingerprint", [1], method="foo"), "Unsupported method: foo"),
    "split scalar": (call("string_split", b"a b"), "Shape must be rank 1 but is rank 0"),
    "split type": (call("string_split", [b"a"], result_type="foo"), "result_type must be 'RaggedTensor' or"),
    "reduce_join": (
        call("reduce_join", SQUARE, axis=2),
        "Invalid reduction dimension 2 for input with 2 dim",
    ),
    "reduce_join twice": (call("reduce_join", SQUARE, axis=[0, 0]), "Duplicate reduction dimension 0"),
    "segments": (
        call("strings.unsorted_segment_join", [b"a"], [5], 2),
        "segment_ids are not allowed to exceed",
    ),
    "join": (
        call("string_join", [[b"a", b"b"], [b"c"]]),
        "Dimension 0 in both shapes must be equal, but are 2 and 1",
    ),
    "format": (
        call("strings.format", "{} {}", (1,)),
        "The template expects 2 tensors, but the inputs only has 1",
    ),
    **{
        f"pattern {p!r}": (
            call("strings.regex_full_match", TEXTS, p),
            f"Invalid pattern: {p.decode()}, error: {why}",
        )
        for p, why in (
            (b"(a", "missing ): (a"),
            (b"a**", "bad repetition operator: **"),
            (b"(?=a)", "invalid perl operator: (?="),
            (b"(a)\\1", "invalid escape sequence: \\1"),
            (b"[a", "missing ]: [a"),
            (b"*", "no argument for repetition operator: *"),
            (b"a)", "unexpected ): a)"),
            (b"\\", "trailing \\"),
            (b"[b-a]", "invalid character class range: b-a"),
            (b"a{1001}", "invalid repetition size: {1001}"),
            (b"((a{100}){100}){100}", "invalid repetition size: {100}"),
        )
    },
}


@walk_errors(ERRORS)
def test_errors(tensorflow, program, phrase):
    refuse_alike(tensorflow, program, phrase)
