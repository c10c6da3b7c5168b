"""The HTTP interface of the page: `/api/...` as JSON, `/metrics`, `/healthz`, the page and its assets."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from tensorfleet.base import errors, logging
from tensorfleet.cli.dashboard.access import HEADERS, Access
from tensorfleet.cli.dashboard.overview import Json
from tensorfleet.cli.dashboard.sources import RunSource, Unavailable

STATIC = Path(__file__).parent / "static"
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MAX_BODY_BYTES = 64 * 1024
_MAX_INSPECTIONS = 4  # under way at one time
_MAX_TAIL_LINES = 5000
_MAX_TRACED_STEPS = 1000
_OPEN = "/healthz"  # the only path without a key
_NO_KEY = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>TensorFleet: key needed</title>
<h1>This page needs its key</h1>
<p>Open the address that <code>tensorfleet run</code> has printed at its start: it ends in <code>/?key=...</code>.</p>
<p><code>tensorfleet dashboard NAME</code> prints it again, on the machine of the run. <code>tensorfleet ps</code>
lists the names.</p>
</html>
"""
_NO_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>TensorFleet</title>
<h1>The page's files are not installed</h1>
<p>The data is at <a href="/api/now">/api/now</a>, <a href="/api/run">/api/run</a> and
<a href="/metrics">/metrics</a>. Install TensorFleet again to have the page.</p>
</html>
"""
_Answer: TypeAlias = Callable[[Request], Awaitable[Response]]


def make_app(source: RunSource, access: Access) -> Starlette:
    """The application that shows one run."""
    pages = _Pages(source)
    routes: list[BaseRoute] = [
        Route("/", pages.index),
        Route(_OPEN, pages.health),
        Route("/metrics", _told(source.metrics, as_metrics)),
        Route("/api/run", _told(source.describe)),
        Route("/api/now", _told(source.now)),
        Route("/api/series", pages.series),
        Route("/api/logs/{task}", pages.logs),
        Route("/api/inspect/{task}/{topic}", pages.inspect, methods=["POST"]),
        Route("/api/trace", pages.trace, methods=["POST"]),
    ]
    if STATIC.is_dir():
        routes.append(Mount("/static", StaticFiles(directory=STATIC)))
    return Starlette(
        routes=routes,
        middleware=[Middleware(_Guard, access=access)],
        exception_handlers={HTTPException: _refused},
    )


def finite(value: Any) -> Any:
    """A report with null for the numbers that JSON does not have: a tensor's mean may be one."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_metrics(text: str) -> Response:
    """A text in Prometheus's format."""
    return Response(text, media_type=METRICS_TYPE)


def error_answer(status: int, sentence: str) -> Response:
    """A refusal, as the interface gives all of them."""
    return JSONResponse({"error": sentence}, status)


class _Guard(BaseHTTPMiddleware):
    """Lets in who has the key, and adds the headers that browsers heed."""

    def __init__(self, app: Any, access: Access) -> None:
        super().__init__(app)
        self._access = access

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        """Answers a request, or passes it on."""
        response = self._refusal(request)
        if response is None:
            try:
                response = await call_next(request)
            except Exception as error:
                response = _failure(request, error)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    def _refusal(self, request: Request) -> Response | None:
        access, headers = self._access, request.headers
        host = headers.get("host")
        if not access.is_own_host(host):
            return error_answer(
                421, "This server is not known by that name. Use the address that was printed at the start."
            )
        # Not `request.url`, which is made of the Host header too: what that says must not open other paths.
        path = request.scope["path"]
        if path == _OPEN:
            return None
        if path == "/" and "key" in request.query_params:
            return self._enter(request.query_params["key"])
        if not access.may_enter(request.cookies, headers.get("authorization")):
            return _unauthorized(path)
        if request.method not in ("GET", "HEAD") and not access.is_own_origin(host, headers):
            return error_answer(403, "Only the page itself may ask this. Reload it.")
        return None

    def _enter(self, key: str) -> Response:
        if not self._access.knows(key):
            return _unauthorized("/")
        # The address without the key: it stays in no history and no screenshot.
        response = RedirectResponse("/", 303)
        response.set_cookie(
            self._access.cookie,
            key,
            httponly=True,
            samesite="strict",
            secure=self._access.is_secure,
            path="/",
        )
        return response


def _unauthorized(path: str) -> Response:
    if path.startswith("/api/"):
        return error_answer(
            401, "The key is missing or wrong. Run tensorfleet dashboard NAME for the address."
        )
    return HTMLResponse(_NO_KEY, 401)


def _told(tell: Callable[[], Any], answer: Callable[[Any], Response] = JSONResponse) -> _Answer:
    async def endpoint(request: Request) -> Response:
        return answer(await run_in_threadpool(tell))

    return endpoint


class _Pages:
    """The paths that have arguments."""

    def __init__(self, source: RunSource) -> None:
        self._source = source
        self._inspections = threading.BoundedSemaphore(_MAX_INSPECTIONS)

    async def index(self, request: Request) -> Response:
        """The page."""
        page = STATIC / "index.html"
        return FileResponse(page) if page.is_file() else HTMLResponse(_NO_PAGE)

    async def health(self, request: Request) -> Response:
        """For probes: this server answers."""
        return JSONResponse({"status": "ok"})

    async def series(self, request: Request) -> Response:
        """The curves."""
        seconds = _number(request, "seconds", 600.0)
        since = _number(request, "since", 0.0)
        return JSONResponse(await run_in_threadpool(self._source.series, seconds, since))

    async def logs(self, request: Request) -> Response:
        """The end of a task's log."""
        tail = int(min(max(_number(request, "tail", 200.0), 1.0), _MAX_TAIL_LINES))
        try:
            lines = await run_in_threadpool(self._source.log_lines, self._task(request), tail)
        except Unavailable as reason:  # usual where tasks were started by hand
            return JSONResponse({"lines": [], "note": str(reason)})
        return JSONResponse({"lines": lines})

    async def inspect(self, request: Request) -> Response:
        """A question to a task."""
        options = await _body(request)
        return await self._inspected(
            self._source.inspect, self._task(request), request.path_params["topic"], options
        )

    async def trace(self, request: Request) -> Response:
        """A trace of the next steps, as a file."""
        await _body(request)
        steps = int(_number(request, "steps", 20.0))
        if not 1 <= steps <= _MAX_TRACED_STEPS:
            raise HTTPException(400, f"steps is {steps}; it must be from 1 to {_MAX_TRACED_STEPS}.")
        response = await self._inspected(self._source.trace, steps)
        response.headers["Content-Disposition"] = 'attachment; filename="trace.json"'
        return response

    def _task(self, request: Request) -> str:
        job, _, index = str(request.path_params["task"]).rpartition("-")
        return f"{job}/{index}"

    async def _inspected(self, ask: Callable[..., Json], *arguments: Any) -> Response:
        if not self._inspections.acquire(blocking=False):
            raise HTTPException(429, f"{_MAX_INSPECTIONS} questions to tasks are under way. Try again.")
        try:
            return JSONResponse(finite(await run_in_threadpool(ask, *arguments)))
        finally:
            self._inspections.release()


def _number(request: Request, name: str, default: float) -> float:
    text = request.query_params.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e12:
        raise HTTPException(400, f"{name} is {text[:40]!r}; it must be a number of at least 0.")
    return value


async def _body(request: Request) -> Json:
    """The options in a request's body."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY_BYTES:
            raise HTTPException(413, f"The request is too large: at most {_MAX_BODY_BYTES} bytes.")
    try:
        options = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        options = None
    if not isinstance(options, dict):
        raise HTTPException(400, "The body of the request must be a JSON object.")
    return options


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = str(error.detail)
    if detail in ("Not Found", "Method Not Allowed"):  # Starlette's own
        detail = f"No {request.url.path[:200]} to {request.method} here."
    return error_answer(error.status_code, detail)


def _failure(request: Request, error: Exception) -> Response:
    """What sources raise, as an answer."""
    match error:
        case KeyError():
            return error_answer(404, f"The run has no task {str(error.args[0])[:80]}.")
        case Unavailable():
            return error_answer(error.status, str(error))
        case errors.InvalidArgumentError():
            return error_answer(400, error.message)
        case errors.FailedPreconditionError():
            return error_answer(409, error.message)  # such as a trace that is under way
        case errors.PermissionDeniedError():
            return error_answer(403, error.message)
        case errors.OpError():
            return error_answer(502, error.message)
    logging.error("The page failed to answer %s: %r", request.url.path, error)
    return error_answer(500, "The page's server failed to answer. Its log says why.")
