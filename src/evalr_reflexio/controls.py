"""The arms whose served answers had no Reflexio."""

from __future__ import annotations

from evalr.errors import InputError
from evalr_reflexio.arms import Arms, SourceArms
from evalr_reflexio.stored import CONTROLS, Served


def controls_of(arms: Arms | None, shadow: Served) -> tuple[str, ...]:
    """The labels of arms whose served answers were without Reflexio.

    Raises:
        InputError: only the arm says whose answers had Reflexio, and no set of request sources is called control.
    """
    if shadow not in ("served", "shadow", "arm"):
        raise InputError(f"shadow={shadow!r} must be 'served', 'shadow' or 'arm'")
    if shadow == "arm" and arms is None:
        raise InputError("shadow='arm' needs arms, such as arms='tag', which say whose served answer had Reflexio")
    if not isinstance(arms, SourceArms):
        return CONTROLS
    found = tuple(label for label in arms.labels if label.casefold() in CONTROLS)
    if shadow == "arm" and not found:
        raise InputError("shadow='arm' needs a set of request sources labelled control, where answers had no Reflexio")
    return found
