"""Features of sounds, by the names that speech scripts use."""

import numpy as np
import pytest
from tensorfleet.contrib.framework.python.ops import audio_ops

import tensorfleet as tf
from tests.support.sessions import run


def test_the_features_of_a_sound_file():
    tone = np.sin(2 * np.pi * 1000 / 16000 * np.arange(16000, dtype=np.float32))[:, None]
    sound = audio_ops.decode_wav(tf.audio.encode_wav(tone, 16000), desired_channels=1, desired_samples=16000)
    spectrogram = audio_ops.audio_spectrogram(
        sound.audio, window_size=480, stride=160, magnitude_squared=True
    )
    assert spectrogram.shape == [1, 98, 257]
    assert run(spectrogram)[0].mean(0).argmax() == 32  # 1000 Hz, in steps of 16000 / 512
    features = audio_ops.mfcc(spectrogram, sound.sample_rate, dct_coefficient_count=40)
    assert features.shape == [1, 98, 40]
    assert np.isfinite(run(features)).all()


@pytest.mark.parametrize(
    ("window", "stride", "said"), [(1, 1, "Window size must be > 1"), (4, 0, "Stride must be")]
)
def test_windows_that_cannot_be_are_refused(window, stride, said):
    with pytest.raises(ValueError, match=said):
        audio_ops.audio_spectrogram(np.zeros((8, 1), np.float32), window, stride)


def test_more_coefficients_than_bands_are_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="take at most as many"):
        run(audio_ops.mfcc(np.ones((1, 1, 65), np.float32), 8000, dct_coefficient_count=50))
