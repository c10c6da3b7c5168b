# Written by tools/make_stubs.py.
from tensorfleet.contrib.text import python as python
from tensorfleet_legacy.contrib.text.skip_gram_ops import skip_gram_sample as skip_gram_sample
from tensorfleet_legacy.contrib.text.skip_gram_ops import skip_gram_sample_with_text_vocab as skip_gram_sample_with_text_vocab
