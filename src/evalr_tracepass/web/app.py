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

from evalr.errors import EvalrError, InputError
from evalr_tracepass.records import Pass, Rerun
from evalr_tracepass.stores.store import LATEST
from evalr_tracepass.web.asking import address, asked_of
from evalr_tracepass.web.conversation import conversation_page
from evalr_tracepass.web.desk import Desk
from evalr_tracepass.web.forms import Fields, FormError, fields_of, read_form
from evalr_tracepass.web.guard import COOKIE, LOGIN, Guarded, is_open
from evalr_tracepass.web.kept import MOST_PASSES
from evalr_tracepass.web.lists import list_page
from evalr_tracepass.web.panel import Ordered, known_of, ordered_of, panel_values, plan_of, transform_choices
from evalr_tracepass.web.pass_pages import failed_page, history, pass_of, pass_page, standing_of
from evalr_tracepass.web.rendering import files
from evalr_tracepass.web.running import ahead_of, begin, resume, retry
from evalr_tracepass.web.signal_pages import (
    Draft,
    draft_from,
    draft_of,
    inspect_choices,
    models_of,
    signal_lines,
    signal_of,
)
from evalr_tracepass.web.snapshot import Entry, Snapshot

PATIENCE = 1.5
"""Seconds for which a page waits for a log that is being read, before it says that it is."""
LONGER = 20.0
"""Seconds that what a form asks for may take."""

RERUNS: dict[str, Rerun] = {"new": "new", "all": "all"}

Page = Callable[[Desk, Request, Fields], Response]
Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(desk: Desk) -> Guarded:
    """The pages of a desk, behind its guard."""
    routes = [
        Route("/", _shown(desk, _list)),
        Route("/c/{key}", _shown(desk, _conversation)),
        Route("/run", _shown(desk, _panel)),
        Route("/run", _done(desk, _run), methods=["POST"]),
        Route("/passes", _shown(desk, _passes)),
        Route("/passes/{id}", _shown(desk, _pass)),
        Route("/passes/{id}/failed", _shown(desk, _failed_inputs)),
        Route("/passes/{id}/retry", _done(desk, _retry), methods=["POST"]),
        Route("/passes/{id}/resume", _done(desk, _resume), methods=["POST"]),
        Route("/signals", _shown(desk, _signals)),
        Route("/signals/edit", _shown(desk, _signal)),
        Route("/signals/save", _done(desk, _save_signal), methods=["POST"]),
        Route("/signals/delete", _done(desk, _delete_signal), methods=["POST"]),
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
            said = "This form is from before the page was started anew. Go back and reload it."
            return _problem(desk, 403, said, bare=is_open(request.url.path))
        return await run_in_threadpool(view, desk, request, fields)

    return endpoint


def _problem(desk: Desk, status: int, said: str, *, title: str = "That did not work", bare: bool = False) -> Response:
    return HTMLResponse(desk.page("problem.html", bare=bare, title=title, said=said), status_code=status)


# ---------------------------------------------------------------------------------------------------------------------
# Pages
# ---------------------------------------------------------------------------------------------------------------------


def _read(desk: Desk) -> Snapshot | Response:
    """The log, or the page that says that it is still being read."""
    desk.reading.look()
    snapshot = desk.reading.wait(PATIENCE)
    if snapshot is None:
        return HTMLResponse(desk.page("reading.html", so_far=desk.reading.so_far))
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
        snapshot = desk.reading.anew(PATIENCE) or snapshot
        entry = snapshot.by_key.get(key)
        transcript = None if entry is None else snapshot.transcript(entry)
    if entry is not None:
        convo_id, user = entry.convo_id, entry.user
    else:
        labels = desk.kept.flagged(LATEST, None, read=True).get(key)
        if labels is None:
            return _problem(desk, 404, "There is no such conversation, in the log or in the store.", title="Not found")
        convo_id, user = labels.convo_id, labels.user
    found = conversation_page(desk, convo_id, user, transcript, asked)
    for label in found["best"]:
        # A chip of the list leads to where its signal was surest.
        if label.signal_id == fields.get("to") and label.link:
            return RedirectResponse(label.link, status_code=303)
    return HTMLResponse(desk.page("conversation.html", key=key, entry=entry, **found))


# ---------------------------------------------------------------------------------------------------------------------
# Running
# ---------------------------------------------------------------------------------------------------------------------


def _panel(desk: Desk, request: Request, fields: Fields) -> Response:
    if not desk.can_act:
        return _read_only(desk)
    snapshot = _read(desk)
    if isinstance(snapshot, Response):
        return snapshot
    return _panel_page(desk, snapshot, ordered_of(fields))


def _panel_page(
    desk: Desk, snapshot: Snapshot, ordered: Ordered, *, asking: bool = False, error: str | None = None
) -> Response:
    """The panel beside its list; with `asking`, the question before what has labels is read again."""
    ahead = None
    entries: list[Entry] = []
    if error is None:
        try:
            entries, made = plan_of(desk, snapshot, ordered)
            ahead = ahead_of(desk, snapshot, entries, made, patience=0 if asking else PATIENCE)
        except InputError as refused:
            error = str(refused)
    found = list_page(desk, snapshot, ordered.asked, picked=frozenset(ordered.keys))
    values = panel_values(desk, ordered, ahead, entries, {line.key for line in found["lines"]})
    page = desk.page("run.html", **found, **values, error=error, dialog=asking)
    return HTMLResponse(page, status_code=200 if error is None else 422)


def _run(desk: Desk, request: Request, fields: Fields) -> Response:
    desk.reading.look()
    snapshot = desk.reading.wait(LONGER)
    if snapshot is None:
        return _problem(desk, 503, "The log is still being read: try again in a moment.")
    ordered, rerun = ordered_of(fields), fields.get("rerun", "")
    try:
        entries, made = plan_of(desk, snapshot, ordered)
        ahead = ahead_of(desk, snapshot, entries, made, patience=PATIENCE)
        if not entries or (ahead is not None and not ahead.estimate.inputs):
            return _panel_page(desk, snapshot, ordered, error="There is no text to send.")
        if rerun not in RERUNS and known_of(desk, entries):
            return _panel_page(desk, snapshot, ordered, asking=True)
        pass_id = begin(desk, snapshot, entries, made, RERUNS.get(rerun, "all"))
    except InputError as refused:
        return _panel_page(desk, snapshot, ordered, error=str(refused))
    return RedirectResponse(f"/passes/{pass_id}", status_code=303)


def _passes(desk: Desk, request: Request, fields: Fields) -> Response:
    return HTMLResponse(desk.page("passes.html", lines=history(desk), most=MOST_PASSES))


def _pass(desk: Desk, request: Request, fields: Fields) -> Response:
    pass_id = request.path_params["id"]
    standing = standing_of(desk, pass_id)
    if standing is None:
        return _no_pass(desk)
    return HTMLResponse(desk.page("pass.html", **pass_page(desk, pass_id, standing)))


def _failed_inputs(desk: Desk, request: Request, fields: Fields) -> Response:
    found = pass_of(desk.kept, request.path_params["id"])
    if found is None:
        return _no_pass(desk)
    return HTMLResponse(desk.page("failed.html", **failed_page(desk, found, asked_of(fields))))


def _retry(desk: Desk, request: Request, fields: Fields) -> Response:
    return _go_on(desk, request.path_params["id"], retry)


def _resume(desk: Desk, request: Request, fields: Fields) -> Response:
    return _go_on(desk, request.path_params["id"], resume)


def _go_on(desk: Desk, pass_id: str, how: Callable[[Desk, Pass], None]) -> Response:
    found = pass_of(desk.kept, pass_id)
    if found is None:
        return _no_pass(desk)
    desk.reading.look()
    desk.reading.wait(LONGER)
    how(desk, found)
    return RedirectResponse(f"/passes/{found.id}", status_code=303)


def _no_pass(desk: Desk) -> Response:
    return _problem(desk, 404, "There is no such pass of this account.", title="Not found")


def _read_only(desk: Desk) -> Response:
    return _problem(desk, 403, "This page is read-only: it shows results, and changes nothing.", title="Refused")


# ---------------------------------------------------------------------------------------------------------------------
# Signals
# ---------------------------------------------------------------------------------------------------------------------


def _signals(desk: Desk, request: Request, fields: Fields) -> Response:
    return HTMLResponse(desk.page("signals.html", lines=signal_lines(desk)))


def _signal(desk: Desk, request: Request, fields: Fields) -> Response:
    known = desk.signals()
    name, copied = fields.get("id"), fields.get("from")
    if (name or copied) and (name or copied) not in known:
        return _problem(desk, 404, "There is no such signal.", title="Not found")
    if copied:
        draft = draft_from(known[copied])._replace(signal_id="", name=f"My {known[copied].display_name}")
    else:
        draft = draft_from(known[name]) if name else Draft()
    if not name and not desk.can_act:
        return _read_only(desk)
    return _signal_page(desk, draft)


def _signal_page(desk: Desk, draft: Draft, *, error: str | None = None) -> Response:
    is_own = not draft.signal_id or draft.signal_id in desk.kept.store.signals(desk.kept.account)
    page = desk.page(
        "signal.html",
        draft=draft,
        is_own=is_own,
        origin="file" if draft.signal_id in desk.own else "built-in",
        error=error,
        inspects=inspect_choices(),
        transforms=transform_choices(),
        models=models_of(desk),
    )
    return HTMLResponse(page, status_code=200 if error is None else 422)


def _save_signal(desk: Desk, request: Request, fields: Fields) -> Response:
    draft = draft_of(fields)
    try:
        made = signal_of(desk, draft)
    except InputError as error:
        return _signal_page(desk, draft, error=str(error))
    desk.kept.store.save_signal(desk.kept.account, made)
    return RedirectResponse(address("/signals/edit", [("id", made.signal_id)]), status_code=303)


def _delete_signal(desk: Desk, request: Request, fields: Fields) -> Response:
    if not desk.kept.store.delete_signal(desk.kept.account, fields.get("signal_id")):
        return _problem(desk, 404, "There is no such signal of this account.", title="Not found")
    return RedirectResponse("/signals", status_code=303)


# ---------------------------------------------------------------------------------------------------------------------
# The token, files and what goes wrong
# ---------------------------------------------------------------------------------------------------------------------


def _ask_for_token(desk: Desk, request: Request, fields: Fields) -> Response:
    if desk.guard.token is None:
        return RedirectResponse("/", status_code=303)
    return HTMLResponse(desk.page("login.html", bare=True, wrong=False))


def _take_token(desk: Desk, request: Request, fields: Fields) -> Response:
    if not desk.guard.knows(fields.get("token")):
        return HTMLResponse(desk.page("login.html", bare=True, wrong=True), status_code=401)
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
    """What the guard refuses: nobody has shown a token yet."""
    if status == 401:
        page = desk.page("login.html", bare=True, wrong=False)
        return HTMLResponse(page, status_code=401, headers={"www-authenticate": "Bearer"})
    if status == 421:
        # Whoever calls it by a strange name learns nothing of it.
        return Response(said + "\n", status_code=421, media_type="text/plain")
    return _problem(desk, status, said, title="Refused", bare=True)


async def _refused_route(desk: Desk, request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    title, said = ("Not found", "There is no such page.") if status == 404 else ("Refused", "That cannot be done here.")
    return _problem(desk, status, said, title=title, bare=is_open(request.url.path))


async def _bad_form(desk: Desk, request: Request, error: Exception) -> Response:
    return _problem(desk, 400, str(error), bare=is_open(request.url.path))


async def _failed(desk: Desk, request: Request, error: Exception) -> Response:
    return _problem(desk, 400 if isinstance(error, ValueError) else 503, str(error))
