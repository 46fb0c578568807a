"""From which score on a classifier may decide, and what its scores are worth: as people's labels show."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evalr.errors import DatasetError
from evalr.estimates import display
from evalr.estimates.platt import Platt
from evalr.estimates.words import count_words, interval_words, share_digits
from evalr.labels.files import Place, locked, read_bytes, real_path, replace_lines
from evalr.plain import canonical_text, from_json_text
from evalr.quoting import safe_text

FORMAT = 1


class Threshold(BaseModel):
    """From which score on one answer of one field counts.

    Attributes:
        field: of the verdict type.
        label: what the classifier says.
        at: the least score that counts; None where none does, so that this answer is always handed on.
        target: the share right that was asked for; None where every score counts.
        labels: people's labels of inputs of which the classifier says so.
        decided: those of them with such a score.
        right: those of them where people say the same.
        low: the lower limit of the share right from that score on, with as many tries as were made paid for.
        high: the upper limit.
        slope: with `intercept`, the confidence that a score stands for (`evalr.estimates.platt`).
        intercept: see there; both are None without labels.
        reason: why no score counts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    field: str
    label: str
    at: float | None = Field(ge=0, le=1)
    target: float | None
    labels: int
    decided: int
    right: int
    low: float | None
    high: float | None
    slope: float | None = Field(ge=0)
    intercept: float | None
    reason: str | None = None

    def confidence(self, score: float) -> float | None:
        """The chance that people would say the same, None where there were no labels to tell by."""
        if self.slope is None or self.intercept is None:
            return None
        return Platt(self.slope, self.intercept).chance(score)

    def _repr_html_(self) -> str:
        return display.printed(str(self))

    def __str__(self) -> str:
        name = f"{self.field} {safe_text(self.label)}"
        if self.at is None:
            return f"{name}: never, {self.reason}"
        share = f"{share_digits(self.right / self.decided)}%" if self.decided else "nothing"
        limits = "" if self.low is None or self.high is None else f" {interval_words(self.low, self.high, 'share')}"
        return (
            f"{name}: from a score of {self.at:.3f}, {share}{limits} right of {self.decided:,} of "
            f"{count_words(self.labels, 'label')}"
        )


class DecisionFit(BaseModel):
    """What people's labels say of a decision evaluator: its thresholds, and what its confidence rests on.

    Attributes:
        thresholds: of each field and label.
        level: at which all limits of an answer that were tried hold together.
        tries: how many were: each is at the level `1 - (1 - level) / tries`.
        method: how thresholds were chosen, and how scores became confidence.
        used: examples whose labels were used.
        repeats: those of them with the same text as an example that trained a classifier.
        left_out: examples that were not used, by reason.
        dataset: the hash of the dataset.
        classifiers: the versions of the classifiers by field, which it holds for.
        seen: hashes of the examples and of their texts, which must not measure the evaluator again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    thresholds: tuple[Threshold, ...]
    level: float = Field(gt=0, lt=1)
    tries: int = Field(ge=1)
    method: str
    used: int
    repeats: int
    left_out: dict[str, int]
    dataset: str
    classifiers: dict[str, str]
    seen: frozenset[str] = Field(repr=False)

    def threshold(self, field: str, label: str) -> Threshold | None:
        """That of a label, None where the classifier had no such label then."""
        return next((each for each in self.thresholds if (each.field, each.label) == (field, label)), None)

    def _repr_html_(self) -> str:
        return display.printed(str(self))

    def __str__(self) -> str:
        left_out = "".join(f", {n:,} {reason}" for reason, n in self.left_out.items())
        repeats = f", {self.repeats:,} with a text that trained a classifier" if self.repeats else ""
        used = f"{count_words(self.used, 'example')} used{repeats}{left_out}"
        strict = (
            f"{100 * (1 - (1 - self.level) / self.tries):.4g}% limits, since {self.tries} scores were tried of each"
        )
        return "\n".join([f"{used} · {strict}", *map(str, self.thresholds)])

    def save(self, path: Place) -> None:
        """Write it as JSON, whole or not at all.

        Raises:
            DatasetError: the file cannot be written.
        """
        fit = self.model_dump(mode="json") | {"seen": sorted(self.seen)}
        fields = {"type": "decision-fit", "format": FORMAT, "fit": fit}
        real = real_path(path)
        with locked(real):
            replace_lines(real, [canonical_text(fields)])

    @classmethod
    def load(cls, path: Place) -> DecisionFit:
        """Read what `save` wrote.

        Raises:
            DatasetError: the file is missing, damaged or something else.
        """
        real = real_path(path)
        found = json_file(real, "decision-fit", FORMAT)
        try:
            return cls.model_validate(found.get("fit"))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise DatasetError(f"{real}: {safe_text(place)}: {safe_text(first['msg'])}") from None


def json_file(path: Path, kind: str, format_version: int) -> dict[str, object]:
    """The JSON object that is a file's content.

    Raises:
        DatasetError: it is missing, no JSON (a pickle, say), of another kind or of another format.
    """
    content = read_bytes(path)
    if content.startswith((b"\x80", b"PK", b"\x1f\x8b")):
        raise DatasetError(
            f"{path}: a pickle or an archive, which is never loaded: what others put into one may run as code. Load "
            "what save() wrote"
        )
    try:
        found = from_json_text(content)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{path}: not JSON, so it is damaged or something else ({safe_text(str(error))})") from None
    if not isinstance(found, dict) or found.get("type") != kind:
        raise DatasetError(f'{path}: no "type": "{kind}" in it; the file is something else')
    if found.get("format") != format_version:
        raise DatasetError(
            f"{path}: format {safe_text(repr(found.get('format')))}, and this evalr reads format {format_version}; use "
            "the evalr that wrote it"
        )
    return found
