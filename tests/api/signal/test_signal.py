"""`tf.signal`: what TensorFlow cannot be asked, and what is refused."""

import numpy as np
import pytest

import tensorfleet as tf

SIGNAL = np.random.RandomState(0).rand(2, 30).astype(np.float32)


def test_a_short_time_transform_can_be_undone(session):
    spectra = tf.signal.stft(SIGNAL, 8, 2)
    back = tf.signal.inverse_stft(spectra, 8, 2, window_fn=tf.signal.inverse_stft_window_fn(2))
    inside = slice(8, -8)
    np.testing.assert_allclose(session.run(back)[:, inside], SIGNAL[:, inside], rtol=1e-4, atol=1e-5)


def test_cosine_transforms_go_along_any_axis(session):
    there = tf.signal.dct(SIGNAL, norm="ortho", axis=0)
    assert there.shape.as_list() == [2, 30]
    back = tf.signal.idct(there, norm="ortho", axis=0)
    np.testing.assert_allclose(session.run(back), SIGNAL, rtol=1e-4, atol=1e-5)


def test_the_gradient_of_a_shortened_transform_is_that_of_the_kept_part(session):
    x = tf.constant(SIGNAL)
    power = tf.reduce_sum(tf.square(tf.abs(tf.signal.rfft(x, [16]))))
    (dx,) = tf.gradients(power, x)
    value = session.run(dx)
    assert (value[:, 16:] == 0).all() and (value[:, :16] != 0).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.rfft(tf.constant([1, 2, 3])), "requires tf.float32 or float64 inputs"),
        (lambda s: s.dct(SIGNAL, type=5), "Types I, II, III and IV"),
        (lambda s: s.dct(SIGNAL, type=1, norm="ortho"), "Normalization is not supported for the Type-I DCT."),
        (lambda s: s.dct(SIGNAL, norm="bad"), "Unknown normalization"),
        (lambda s: s.linear_to_mel_weight_matrix(0), "num_mel_bins must be positive"),
        (lambda s: s.linear_to_mel_weight_matrix(upper_edge_hertz=9000.0), "Nyquist"),
        (lambda s: s.hann_window(3, dtype=tf.int32), "dtype must be a floating point type"),
        (lambda s: s.frame(SIGNAL, 2.5, 1), "frame_length must be an integer"),
        (lambda s: s.overlap_and_add(SIGNAL[0], 2), "must have rank at least 2"),
    ],
)
def test_impossible_requests_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(tf.signal)


def test_lengths_come_from_inputs_known_at_run_time(session):
    short = tf.placeholder(tf.float32, [None])
    spectrum = tf.abs(tf.signal.rfft(short))
    assert session.run(spectrum, {short: [1.0, 2.0]}).shape == (2,)


@pytest.mark.parametrize("pad_end", [True, False])
@pytest.mark.parametrize("axis", [-1, 1, -2])
def test_a_signal_of_unknown_rank_is_framed_when_it_is_there(session, pad_end, axis):
    values = np.random.RandomState(0).rand(2, 5, 4, 7).astype(np.float32)
    signal = tf.placeholder(tf.float32)
    framed = tf.signal.frame(signal, 3, 2, pad_end=pad_end, pad_value=9, axis=axis)
    expected = tf.signal.frame(values, 3, 2, pad_end=pad_end, pad_value=9, axis=axis)
    np.testing.assert_array_equal(session.run(framed, {signal: values}), session.run(expected))
    added, wanted = (tf.signal.overlap_and_add(s, 2) for s in (signal, values))
    np.testing.assert_array_equal(session.run(added, {signal: values}), session.run(wanted))


def test_what_frames_are_filled_up_with_is_one_number():
    with pytest.raises(ValueError, match="must have rank 0"):
        tf.signal.frame([1, 2], 2, 2, pad_end=True, pad_value=[1])


def test_the_gradient_of_frames_is_a_tensor(session):
    signal = tf.ones([8])
    (slope,) = tf.gradients(tf.signal.frame(signal, 4, 2), signal)
    assert isinstance(slope, tf.Tensor)
    np.testing.assert_array_equal(session.run(slope), [1, 1, 2, 2, 2, 2, 1, 1])


def test_how_many_lines_a_spectrum_has_may_be_known_late(session):
    count = tf.placeholder_with_default(129, [])
    late = tf.signal.linear_to_mel_weight_matrix(num_spectrogram_bins=count)
    np.testing.assert_allclose(
        session.run(late), session.run(tf.signal.linear_to_mel_weight_matrix()), atol=1e-6
    )
    with pytest.raises(ValueError, match="num > 0"):
        tf.signal.linear_to_mel_weight_matrix(num_spectrogram_bins=0)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tf.signal.frame(x, 8, 3),
        lambda x: tf.signal.frame(x, 8, tf.placeholder_with_default(3, []), pad_end=True, pad_value=9),
        lambda x: tf.signal.frame(x, 2, 1, axis=0),
        lambda x: tf.signal.overlap_and_add(x, 4),
        lambda x: tf.signal.stft(x, 8, 2),
        lambda x: tf.signal.dct(x, n=16),
        lambda x: tf.signal.idct(x, norm="ortho"),
        lambda x: tf.signal.mfccs_from_log_mel_spectrograms(x),
        lambda x: tf.signal.fftshift(x),
        lambda x: tf.signal.ifftshift(x),
        lambda x: tf.signal.inverse_stft(tf.complex(x, x), 70, 4, fft_length=58),
    ],
)
def test_signals_of_unknown_rank(session, call):
    unknown = call(tf.placeholder_with_default(SIGNAL, None))
    np.testing.assert_allclose(*session.run([unknown, call(tf.constant(SIGNAL))]), rtol=1e-5, atol=1e-5)


def test_mel_weights_of_what_is_known_later(session):
    known = tf.signal.linear_to_mel_weight_matrix(20, 129, 8000, dtype=tf.float64)
    for bins, rate in (
        (tf.placeholder_with_default(129, []), 8000.0),
        (129, tf.placeholder_with_default(8000.0, [])),
    ):
        later = tf.signal.linear_to_mel_weight_matrix(20, bins, rate, dtype=tf.float64)
        np.testing.assert_allclose(*session.run([known, later]), atol=1e-9)
    with pytest.raises(ValueError, match="num > 0"):
        tf.signal.linear_to_mel_weight_matrix(num_spectrogram_bins=0)


@pytest.mark.parametrize("kind", ["rfft", "irfft"])
def test_lengths_of_transforms_are_checked(kind):
    transform = getattr(tf.signal, f"{kind}2d")
    x = np.ones([4, 4], np.float32 if kind == "rfft" else np.complex64)
    for bad, length, message in (
        (x[0], None, r"Shape \(4,\) must have rank at least 2"),
        (x, [[2, 2]], r"Shape \(1, 2\) must have rank 1"),
        (x, [2, 2, 2], "Dimension must be 2 but is 3"),
    ):
        with pytest.raises(ValueError, match=message):
            transform(bad, length)


@pytest.mark.parametrize("signal", [1, 1.5])
def test_a_signal_has_an_axis(signal):
    with pytest.raises(ValueError, match="rank at least 1"):
        tf.signal.frame(signal, 1, 1)
    with pytest.raises(ValueError, match="rank 0"):
        tf.signal.frame([signal], 1, 1, pad_end=True, pad_value=[signal])
