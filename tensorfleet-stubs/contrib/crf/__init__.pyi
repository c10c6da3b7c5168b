# Written by tools/make_stubs.py.
from tensorfleet.contrib.crf import python as python
from tensorfleet_legacy.contrib.crf.crf import CrfDecodeBackwardRnnCell as CrfDecodeBackwardRnnCell
from tensorfleet_legacy.contrib.crf.crf import CrfDecodeForwardRnnCell as CrfDecodeForwardRnnCell
from tensorfleet_legacy.contrib.crf.crf import CrfForwardRnnCell as CrfForwardRnnCell
from tensorfleet_legacy.contrib.crf.crf import crf_binary_score as crf_binary_score
from tensorfleet_legacy.contrib.crf.crf import crf_decode as crf_decode
from tensorfleet_legacy.contrib.crf.crf import crf_log_likelihood as crf_log_likelihood
from tensorfleet_legacy.contrib.crf.crf import crf_log_norm as crf_log_norm
from tensorfleet_legacy.contrib.crf.crf import crf_multitag_sequence_score as crf_multitag_sequence_score
from tensorfleet_legacy.contrib.crf.crf import crf_sequence_score as crf_sequence_score
from tensorfleet_legacy.contrib.crf.crf import crf_unary_score as crf_unary_score
from tensorfleet_legacy.contrib.crf.crf import viterbi_decode as viterbi_decode
