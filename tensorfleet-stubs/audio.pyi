# Written by tools/make_stubs.py.
from tensorfleet.ops.image.audio import decode_wav as decode_wav
from tensorfleet.ops.image.audio import encode_wav as encode_wav
