# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.preprocessing.text import Tokenizer as Tokenizer
from tensorfleet_legacy.keras.preprocessing.text import hashing_trick as hashing_trick
from tensorfleet_legacy.keras.preprocessing.text import one_hot as one_hot
from tensorfleet_legacy.keras.preprocessing.text import text_to_word_sequence as text_to_word_sequence
from tensorfleet_legacy.keras.preprocessing.text import tokenizer_from_json as tokenizer_from_json
