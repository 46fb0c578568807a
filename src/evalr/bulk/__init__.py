"""Reports of large logs: the same numbers as `evalr.report`, sooner, and from several processes.

Lines become validated rows, and rows tallies; no input and no verdict is made of them. What has no row form goes the
way that it goes elsewhere, within the same pass.
"""

from evalr.bulk.reports import Tallies, report, tallies, verdicts

__all__ = ["Tallies", "report", "tallies", "verdicts"]
