# Written by tools/make_stubs.py.
from tensorfleet.base.formats.records import TFRecordCompressionType as TFRecordCompressionType
from tensorfleet.base.formats.records import TFRecordOptions as TFRecordOptions
from tensorfleet.base.formats.records import TFRecordWriter as TFRecordWriter
from tensorfleet.base.formats.records import tf_record_iterator as tf_record_iterator
