"""Plots: what `.plot()` gives. A plot is a Vega-Lite specification, as data; the figures are made in `evalr.reports`.

An estimate must not know how it is drawn, so what draws is found by its entry point, as measures and readers are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from evalr.errors import InputError, MissingExtraError, PluginError
from evalr.plugins import load_plugins
from evalr.quoting import safe_text

if TYPE_CHECKING:
    from evalr.estimates.estimate import Estimate

GROUP, OURS = "evalr.plots", "vega"
VEGA_LITE = "5.20"
"""The release that specifications are written for."""
LONGEST = 500
"""Characters of any text in it."""
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
MIME = "application/vnd.vegalite.v5+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot: interactive in a notebook, an SVG anywhere else.

    Everything that is drawn is in it: it asks no network for anything. Names that come from a log are in its data,
    shortened and with whatever could hide in them made visible, and never part of what is computed.

    Attributes:
        spec: the Vega-Lite specification, data included.
        says: what it shows, in words, for those who cannot see it.
    """

    spec: Mapping[str, Any] = field(repr=False)
    says: str

    def to_dict(self) -> dict[str, Any]:
        """The specification with its schema, as other tools of Vega-Lite read it."""
        return {"$schema": SCHEMA, **_seen(self.spec)}

    def to_svg(self, path: str | Path | None = None) -> str:
        """The plot as SVG, which is also written to `path`, where one is given. Needs `evalr[report]`.

        Raises:
            MissingExtraError: the extra is not installed.
            InputError: `spec` is no specification that can be drawn without a network.
        """
        try:
            import vl_convert
        except ModuleNotFoundError as error:
            raise _missing(error, "vl_convert") from error
        try:
            svg: str = vl_convert.vegalite_to_svg(self.to_dict(), vl_version=VEGA_LITE, allowed_base_urls=[])
        except ValueError as error:
            why = safe_text(str(error), longest=300)
            raise InputError(f"this specification cannot be drawn: {why}") from error
        if path is not None:
            Path(path).write_text(svg, encoding="utf-8")
        return svg

    def to_altair(self) -> Any:
        """The plot as an Altair chart, to go on from. Needs `evalr[report]`."""
        try:
            import altair as alt
        except ModuleNotFoundError as error:
            raise _missing(error, "altair") from error
        return alt.Chart.from_dict(_seen(self.spec))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """What a notebook shows: it draws the specification itself where it can, and the SVG where it cannot."""
        bundle: dict[str, Any] = {"text/plain": self.says, MIME: self.to_dict()}
        try:
            bundle["image/svg+xml"] = self.to_svg()
        except MissingExtraError as error:
            bundle["text/plain"] = f"{self.says}\n({error})"
        return bundle


@runtime_checkable
class Plotter(Protocol):
    """What draws results, under the entry point group `evalr.plots`."""

    name: str

    def plot(self, result: Any, *, title: str | None, width: int | None) -> Plot:
        """The plot of a result of evalr.

        Raises:
            InputError: there is nothing in it to draw.
        """


class Plotted:
    """A result that can be drawn. One that only holds estimates names them in `drawn`, and they are its plot."""

    __slots__ = ()

    def drawn(self) -> Sequence[tuple[str, Estimate]]:
        """The estimates that its plot shows, each with what it is called; none where it has a plot of its own."""
        return ()

    def plot(self, *, title: str | None = None, width: int | None = None) -> Plot:
        """Draw it: with its interval, and with the n of every point.

        Args:
            title: what stands above it; by default its name.
            width: of what is drawn, in pixels; by default what its points need.

        Raises:
            InputError: there is nothing to draw.
        """
        found = load_plugins(GROUP, Plotter, only=OURS)  # type: ignore[type-abstract]
        if OURS not in found.loaded:
            why = found.broken.get(OURS, "evalr's installed files do not name it: install evalr again")
            raise PluginError(f"plots cannot be drawn: {why}")
        return found.loaded[OURS].plot(self, title=title, width=width)


def _seen(value: Any) -> Any:
    """A specification in whose texts nothing is hidden: what draws ends the whole process at a control character."""
    if isinstance(value, str):
        return safe_text(value, longest=LONGEST)
    if isinstance(value, Mapping):
        return {_seen(name): _seen(each) for name, each in value.items()}
    return [_seen(each) for each in value] if isinstance(value, list | tuple) else value


def _missing(error: ModuleNotFoundError, module: str) -> Exception:
    """What to install, where it is that very module that is missing."""
    if error.name != module:
        return error
    package = metadata.distribution("evalr").name
    return MissingExtraError(f"drawing needs {module!r}, which is not installed: pip install '{package}[report]'")
