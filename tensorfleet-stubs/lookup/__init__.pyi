# Written by tools/make_stubs.py.
from tensorfleet.lookup import experimental as experimental
from tensorfleet.ops.state.lookup import KeyValueTensorInitializer as KeyValueTensorInitializer
from tensorfleet.ops.state.lookup import StaticHashTable as StaticHashTable
from tensorfleet.ops.state.lookup import StaticVocabularyTable as StaticVocabularyTable
from tensorfleet.ops.state.lookup import TextFileIndex as TextFileIndex
from tensorfleet.ops.state.lookup import TextFileInitializer as TextFileInitializer
