# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.learn.text import ByteProcessor as ByteProcessor
from tensorfleet_legacy.contrib.learn.text import CategoricalVocabulary as CategoricalVocabulary
from tensorfleet_legacy.contrib.learn.text import VocabularyProcessor as VocabularyProcessor
from tensorfleet_legacy.contrib.learn.text import tokenizer as tokenizer
