from pathlib import Path

import tensorfleet as tf


def test_headers_would_lie_in_the_package():
    assert tf.sysconfig.get_lib() == str(Path(tf.__file__).parent)
    assert tf.sysconfig.get_include() == str(Path(tf.__file__).parent / "include")
