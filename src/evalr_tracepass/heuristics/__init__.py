"""Classifiers that work offline: rules written by hand, each under a name that says so."""

from __future__ import annotations

from evalr_tracepass.heuristics import answers, failures, loops, thinking, tone
from evalr_tracepass.heuristics.heuristic import Heuristic

HEURISTICS: dict[str, Heuristic] = {
    each.name: each
    for each in (loops.heuristic, failures.heuristic, thinking.heuristic, answers.heuristic, tone.heuristic)
}
"""The heuristics that come with it, by their names."""
