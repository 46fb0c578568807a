"""The traces page as an ASGI app."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from evalr.errors import EvalrError
from evalr_tracepass.web.asking import asked_of
from evalr_tracepass.web.conversation import conversation_page
from evalr_tracepass.web.desk import Desk
from evalr_tracepass.web.forms import Fields, FormError, fields_of, read_form
from evalr_tracepass.web.guard import COOKIE, LOGIN, Guarded
from evalr_tracepass.web.lists import list_page
from evalr_tracepass.web.rendering import files
from evalr_tracepass.web.snapshot import Snapshot

PATIENCE = 1.5
"""Seconds for which a page waits for a log that is being read, before it says that it is."""

Page = Callable[[Desk, Request, Fields], Response]
Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(desk: Desk) -> Guarded:
    """The pages of a desk, behind its guard."""
    routes = [
        Route("/", _shown(desk, _list)),
        Route("/c/{key}", _shown(desk, _conversation)),
        Route(LOGIN, _shown(desk, _ask_for_token)),
        Route(LOGIN, _done(desk, _take_token), methods=["POST"]),
        Route("/static/{name}", _file),
    ]
    handlers: Any = {
        HTTPException: partial(_refused_route, desk),
        EvalrError: partial(_failed, desk),
        FormError: partial(_bad_form, desk),
    }
    return Guarded(Starlette(routes=routes, exception_handlers=handlers), desk.guard, partial(_refused, desk))


def _shown(desk: Desk, view: Page) -> Endpoint:
    """A page that is looked at. It is made in a thread, since stores and logs are waited for."""

    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(view, desk, request, fields_of(request.url.query))

    return endpoint


def _done(desk: Desk, view: Page) -> Endpoint:
    """What a form does, if it is one of this process."""

    async def endpoint(request: Request) -> Response:
        fields = await read_form(request)
        if not desk.guard.is_form(fields.get("form_key")):
            return _problem(desk, 403, "This form is from before the page was started anew. Go back and reload it.")
        return await run_in_threadpool(view, desk, request, fields)

    return endpoint


def _problem(desk: Desk, status: int, said: str, *, title: str = "That did not work") -> Response:
    return HTMLResponse(desk.page("problem.html", title=title, said=said), status_code=status)


# ---------------------------------------------------------------------------------------------------------------------
# Pages
# ---------------------------------------------------------------------------------------------------------------------


def _read(desk: Desk) -> Snapshot | Response:
    """The log, or the page that says that it is still being read, or cannot be."""
    desk.reading.look()
    snapshot = desk.reading.wait(PATIENCE)
    if snapshot is None:
        return HTMLResponse(desk.page("reading.html", so_far=desk.reading.so_far))
    if desk.reading.error is not None and not desk.reading.is_running:
        # The file may be there again.
        desk.reading.begin()
        return _problem(desk, 503, desk.reading.error, title="The log cannot be read")
    return snapshot


def _list(desk: Desk, request: Request, fields: Fields) -> Response:
    snapshot = _read(desk)
    if isinstance(snapshot, Response):
        return snapshot
    asked = asked_of(fields)
    picked = frozenset(fields.getlist("c"))
    return HTMLResponse(desk.page("list.html", **list_page(desk, snapshot, asked, picked=picked)))


def _conversation(desk: Desk, request: Request, fields: Fields) -> Response:
    snapshot = _read(desk)
    if isinstance(snapshot, Response):
        return snapshot
    key, asked = request.path_params["key"], asked_of(fields)
    entry = snapshot.by_key.get(key)
    transcript = None if entry is None else snapshot.transcript(entry)
    if entry is not None and transcript is None:
        desk.reading.begin()
    if entry is not None:
        convo_id, user = entry.convo_id, entry.user
    else:
        labels = desk.kept.flagged("all", None, read=True).get(key)
        if labels is None:
            return _problem(desk, 404, "There is no such conversation, in the log or in the store.", title="Not found")
        convo_id, user = labels.convo_id, labels.user
    found = conversation_page(desk, convo_id, user, transcript, asked)
    return HTMLResponse(desk.page("conversation.html", key=key, entry=entry, **found))


# ---------------------------------------------------------------------------------------------------------------------
# The token, files and what goes wrong
# ---------------------------------------------------------------------------------------------------------------------


def _ask_for_token(desk: Desk, request: Request, fields: Fields) -> Response:
    if desk.guard.token is None:
        return RedirectResponse("/", status_code=303)
    return HTMLResponse(desk.page("login.html", wrong=False))


def _take_token(desk: Desk, request: Request, fields: Fields) -> Response:
    if not desk.guard.knows(fields.get("token")):
        return HTMLResponse(desk.page("login.html", wrong=True), status_code=401)
    answer = RedirectResponse("/", status_code=303)
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, desk.guard.cookie, httponly=True, samesite="strict", secure=secure, path="/")
    return answer


async def _file(request: Request) -> Response:
    found = files().get(request.path_params["name"])
    if found is None:
        raise HTTPException(404)
    return Response(found.content, media_type=found.media_type, headers={"cache-control": "max-age=3600"})


def _refused(desk: Desk, scope: Any, status: int, said: str) -> Response:
    """What the guard refuses."""
    if status == 401:
        return HTMLResponse(
            desk.page("login.html", wrong=False), status_code=401, headers={"www-authenticate": "Bearer"}
        )
    # Whoever calls it by a strange name learns nothing of it.
    return (
        Response(said + "\n", status_code=status, media_type="text/plain")
        if status == 421
        else _problem(desk, status, said, title="Refused")
    )


async def _refused_route(desk: Desk, request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        return _problem(desk, 404, "There is no such page.", title="Not found")
    return _problem(desk, status, "That cannot be done here.")


async def _bad_form(desk: Desk, request: Request, error: Exception) -> Response:
    return _problem(desk, 400, str(error))


async def _failed(desk: Desk, request: Request, error: Exception) -> Response:
    return _problem(desk, 400 if isinstance(error, ValueError) else 503, str(error))
