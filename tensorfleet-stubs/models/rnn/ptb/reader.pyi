# Written by tools/make_stubs.py.
from tensorfleet_legacy.tutorials.ptb_reader import _build_vocab as _build_vocab
from tensorfleet_legacy.tutorials.ptb_reader import _file_to_word_ids as _file_to_word_ids
from tensorfleet_legacy.tutorials.ptb_reader import _read_words as _read_words
from tensorfleet_legacy.tutorials.ptb_reader import ptb_iterator as ptb_iterator
from tensorfleet_legacy.tutorials.ptb_reader import ptb_producer as ptb_producer
from tensorfleet_legacy.tutorials.ptb_reader import ptb_raw_data as ptb_raw_data
