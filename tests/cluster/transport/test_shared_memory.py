"""Large tensors between two processes of one machine lie in memory that both have."""

import contextlib
import gc
import os
import socket
import sys

import ml_dtypes
import numpy as np
import pytest

from tensorfleet.base import errors
from tensorfleet.cluster import messages
from tensorfleet.cluster.transport import shared_memory as shared
from tensorfleet.cluster.transport import wire
from tensorfleet.cluster.transport.tensor_bytes import describe
from tensorfleet.kernels.aligned_memory import is_fixed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the memory has no name only on Linux")

LARGE = 1 << 17


def open_descriptors():
    """What this process has open; what others left may be closed at any time."""
    gc.collect()
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            known = os.stat(f"/proc/self/fd/{descriptor}")
            found.add((known.st_dev, known.st_ino))
    return found


def passed(ends, *values):
    here, there = ends
    here.send(messages.RUN, b"fields", values)
    frame = there.receive()
    assert (frame.kind, frame.fields) == (messages.RUN, b"fields")
    return frame.tensors


def test_what_arrives_is_what_was_sent(ends):
    values = [
        np.arange(LARGE, dtype=np.float32),
        np.arange(LARGE).reshape(2, -1)[:, ::3].T,
        np.float64(3.5),
        np.arange(9000, dtype=np.float32).astype(ml_dtypes.bfloat16),
        np.zeros((0, 5), np.int64),
        np.array([b"a", b"", b"ccc"], object),
        np.array(True),
    ]
    for sent, found in zip(values, passed(ends, *values), strict=True):
        assert found.dtype == sent.dtype and found.shape == sent.shape
        np.testing.assert_array_equal(found, sent)
    assert len(ends[0]._outbox.segments) == len(ends[1]._inbox.segments) == 1


def test_small_frames_do_not_use_it(ends):
    passed(ends, np.zeros(10))
    assert not ends[0]._outbox.segments


def test_memory_is_filled_again_once_nothing_of_it_is_held(ends):
    for i in range(100):
        (found,) = passed(ends, np.full(LARGE, i))
        assert found[-1] == i
        del found
    assert len(ends[0]._outbox.segments) == 1


def test_tensors_that_are_kept_stay_as_they_are(ends):
    kept = []
    for i in range(12):  # more than there are segments: the last ones come through the socket
        whole, other = passed(ends, np.full(5000, i), np.full(5000, -i))
        kept.append((whole[3:5], other))
        del whole
    assert len(ends[0]._outbox.segments) == 4
    for i, (part, other) in enumerate(kept):
        assert (part == i).all() and (other == -i).all()


@pytest.mark.parametrize("count", [LARGE, 1 << 21])  # small and large pages
def test_nobody_needs_a_copy_of_tensors_that_lie_there(ends, count):
    large, small = passed(ends, np.ones(count, np.float32), np.zeros(3))
    assert is_fixed(large) and is_fixed(small[1:])
    (alone,) = passed(ends, np.zeros(3))  # through the socket
    assert not is_fixed(alone)


def test_a_larger_body_gets_a_larger_segment(ends):
    for size in (LARGE, 4 * LARGE, LARGE, 16 * LARGE):
        (found,) = passed(ends, np.full(size, size))
        assert found.sum() == size * size
        del found
    assert {s.size for s in ends[0]._outbox.segments.values()} == {
        s.size for s in ends[1]._inbox.segments.values()
    }


def test_both_ends_forget_what_is_not_used(ends):
    passed(ends, np.zeros(40 * LARGE))
    for _ in range(5):
        passed(ends, np.zeros(40 * LARGE), np.zeros(LARGE))
    kept = [passed(ends, np.zeros(LARGE)) for _ in range(2)]
    for i in range(3 * shared._FORGET_AFTER_FRAMES):
        assert passed(ends, np.full(LARGE, i))[0][0] == i
    sizes = [s.size for s in ends[0]._outbox.segments.values()]
    assert sizes == [s.size for s in ends[1]._inbox.segments.values()]
    assert max(sizes) < 20 * LARGE * 8
    del kept


def test_no_descriptor_is_left(ends):
    before = open_descriptors()
    for size in range(1, 30):
        passed(ends, np.zeros(size * LARGE))
    assert len(open_descriptors() - before) <= 2 * 4
    pair = [wire.Channel(sock) for sock in socket.socketpair(socket.AF_UNIX)]
    (found,) = passed(pair, np.ones(LARGE))
    for end in pair:
        end.close()
    del pair, end
    assert found.sum() == LARGE
    del found
    ends[0].close()
    ends[1].close()
    assert len(open_descriptors() - before) <= 2  # the last segment of each end, as long as the end is there


def frame_in_segment(number, size, total, fresh=False):
    blob = describe([np.zeros(total, np.uint8)])[0]
    return (
        wire._HEADER.pack(wire._MAGIC, messages.RUN, 1, 1, 0, 0, len(blob), total)
        + blob
        + shared.PLACE.pack(number, fresh, size)
    )


def test_a_segment_that_was_never_shared_is_refused(ends):
    ends[0].sock.sendall(frame_in_segment(2, 1 << 20, 1 << 16))
    with pytest.raises(errors.InvalidArgumentError, match="never shared"):
        ends[1].receive()


@pytest.mark.parametrize(
    ("sealed", "claimed", "number"), [(False, 1 << 20, 0), (True, 1 << 30, 0), (True, 1 << 20, 9)]
)
def test_memory_that_could_be_taken_away_is_refused(ends, sealed, claimed, number):
    flags = os.MFD_ALLOW_SEALING
    descriptor = os.memfd_create("test", flags)
    os.ftruncate(descriptor, 1 << 20)
    if sealed:
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    socket.send_fds(ends[0].sock, [frame_in_segment(number, claimed, 1 << 16, True)], [descriptor])
    os.close(descriptor)
    before = open_descriptors()
    with pytest.raises(errors.InvalidArgumentError, match="taken away|too many segments"):
        ends[1].receive()
    ends[1].close()
    assert not open_descriptors() - before


def test_it_is_refused_over_a_network():
    door = socket.create_server(("127.0.0.1", 0))
    here = socket.create_connection(door.getsockname())
    there = wire.Channel(door.accept()[0])
    here.sendall(frame_in_segment(0, 1 << 20, 1 << 16))
    with pytest.raises(errors.InvalidArgumentError, match="over a network"):
        there.receive()
    there.close()
    here.close()
    door.close()
