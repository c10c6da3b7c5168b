# Written by tools/make_stubs.py.
from tensorfleet.contrib.input_pipeline import python as python
from tensorfleet_legacy.contrib.input_pipeline.input_pipeline_ops import obtain_next as obtain_next
from tensorfleet_legacy.contrib.input_pipeline.input_pipeline_ops import seek_next as seek_next
