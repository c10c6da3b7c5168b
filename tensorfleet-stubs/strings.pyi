# Written by tools/make_stubs.py.
from tensorfleet.ops.string.elements import string_length as _length
from tensorfleet.ops.string.elements import string_lower as _lower
from tensorfleet.ops.string.elements import string_strip as _strip
from tensorfleet.ops.string.elements import string_to_number as _to_number
from tensorfleet.ops.string.elements import string_upper as _upper
from tensorfleet.ops.string.elements import substr as substr
from tensorfleet.ops.string.hash import string_to_hash_bucket as _to_hash_bucket
from tensorfleet.ops.string.hash import string_to_hash_bucket_fast as _to_hash_bucket_fast
from tensorfleet.ops.string.hash import string_to_hash_bucket_strong as _to_hash_bucket_strong
from tensorfleet.ops.string.join import string_join as _join
from tensorfleet.ops.string.ngrams import ngrams as ngrams
from tensorfleet.ops.string.ngrams import string_bytes_split as _bytes_split
from tensorfleet.ops.string.regex import regex_full_match as regex_full_match
from tensorfleet.ops.string.regex import regex_replace as regex_replace
from tensorfleet.ops.string.split import reduce_join as reduce_join
from tensorfleet.ops.string.split import string_format as _format
from tensorfleet.ops.string.split import strings_split as _split
from tensorfleet.ops.string.split import unsorted_segment_join as unsorted_segment_join
from tensorfleet.ops.string.unicode import unicode_encode as unicode_encode
from tensorfleet.ops.string.unicode_scripts import unicode_script as unicode_script
import typing
def as_string(input: typing.Any, precision: typing.Any = ..., scientific: typing.Any = ..., shortest: typing.Any = ..., width: typing.Any = ..., fill: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
bytes_split = _bytes_split
format = _format
join = _join
length = _length
lower = _lower
split = _split
strip = _strip
to_hash_bucket = _to_hash_bucket
to_hash_bucket_fast = _to_hash_bucket_fast
to_hash_bucket_strong = _to_hash_bucket_strong
to_number = _to_number
def unicode_decode(input: typing.Any, input_encoding: typing.Any, errors: typing.Any = ..., replacement_char: typing.Any = ..., replace_control_characters: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def unicode_decode_with_offsets(input: typing.Any, input_encoding: typing.Any, errors: typing.Any = ..., replacement_char: typing.Any = ..., replace_control_characters: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def unicode_split(input: typing.Any, input_encoding: typing.Any, errors: typing.Any = ..., replacement_char: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def unicode_split_with_offsets(input: typing.Any, input_encoding: typing.Any, errors: typing.Any = ..., replacement_char: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def unicode_transcode(input: typing.Any, input_encoding: typing.Any, output_encoding: typing.Any, errors: typing.Any = ..., replacement_char: typing.Any = ..., replace_control_characters: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
upper = _upper
