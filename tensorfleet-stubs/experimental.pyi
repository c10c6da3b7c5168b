# Written by tools/make_stubs.py.
from tensorfleet.session.execution_options import function_executor_type as function_executor_type
from tensorfleet.session.execution_options import output_all_intermediates as output_all_intermediates
