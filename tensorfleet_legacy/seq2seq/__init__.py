"""`tf.contrib.seq2seq`: decoders, the helpers that feed them, attention and beam search; `tf.contrib.crf`."""
