"""What every page needs: the log, the store, the signals, and what may be done here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evalr_tracepass.catalogue import HEURISTIC_SIGNALS, SIGNALS, Available, availability
from evalr_tracepass.records import InputKind, Pass, Reflex
from evalr_tracepass.signal_files import Preset
from evalr_tracepass.signals import Signal
from evalr_tracepass.transports.transport import Transport
from evalr_tracepass.web.guard import Guard
from evalr_tracepass.web.jobs import Counts, Runner
from evalr_tracepass.web.kept import Kept
from evalr_tracepass.web.reading import Reading
from evalr_tracepass.web.rendering import page

INSPECTS: dict[InputKind, str] = {"user_chat": "User chat", "agent_chat": "Agent chat", "full_trace": "Full trace"}
"""What a signal reads, in the words of the panel."""


@dataclass
class Desk:
    """One log and one store, as the pages of one process show them.

    Attributes:
        reading: the log.
        kept: the store, on behalf of an account.
        guard: who may ask for what.
        transport: how texts come to classifiers.
        reflexes: the classifiers that run here, by their aliases; none where a service has them.
        own: signals of a file, beside those of the store.
        own_presets: presets of a file, beside those of the store.
        rate: US dollars for one prediction, or by model.
        poll: seconds between two questions to a service, at least.
        counts: of what passes would come to.
        runner: of the passes that are begun here.
    """

    reading: Reading
    kept: Kept
    guard: Guard
    transport: Transport
    reflexes: Mapping[str, Reflex]
    own: Mapping[str, Signal] = field(default_factory=dict)
    own_presets: Mapping[str, Preset] = field(default_factory=dict)
    rate: float | Mapping[str, float] | None = None
    poll: float = 2.0
    counts: Counts[Any] = field(default_factory=Counts)
    runner: Runner = field(default_factory=Runner)

    @property
    def can_act(self) -> bool:
        """Whether anything can be done here but look."""
        return not self.guard.read_only

    def signals(self) -> dict[str, Signal]:
        """Every signal that there is, by its id: those that come with it before one's own."""
        return {**SIGNALS, **self.own, **self.kept.store.signals(self.kept.account)}

    def presets(self) -> dict[str, Preset]:
        """Signals that are run together, by the names that one gave them."""
        return {**self.own_presets, **self.kept.store.presets(self.kept.account)}

    def available(self, known: Mapping[str, Signal]) -> list[Available]:
        """Which of them can run here, and why others cannot."""
        if self.reflexes:
            return availability(known.values(), self.reflexes)
        models = {each.model for each in known.values()} - HEURISTIC_SIGNALS.keys()
        return availability(known.values(), models)

    def names(self, passes: list[Pass]) -> dict[str, str]:
        """What signals are called, those of passes too that are not there any more."""
        found = {
            str(signal["signal_id"]): str(signal["display_name"])
            for each in reversed(passes)
            for signal in each.selected_signals
        }
        return {**found, **{name: each.display_name for name, each in self.signals().items()}}

    def page(self, template: str, *, bare: bool = False, **values: Any) -> str:
        """A page with what every page has; a bare one says nothing of the log, to whoever may not see it."""
        return page(
            template,
            bare=bare,
            log=self.reading.name,
            trouble=self.reading.error,
            can_act=self.can_act,
            form_key=self.guard.form_key,
            **values,
        )
