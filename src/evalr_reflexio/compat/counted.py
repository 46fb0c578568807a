"""The sessions that a period's results are of, kept in the temporary database: who, from where, and how each ended."""

from __future__ import annotations

SESSIONS = "evalr_counted"
SESSION_COLUMNS = "session_id TEXT, user_id TEXT, source TEXT, set_number INTEGER, success INTEGER"
SETS = "evalr_sets"
"""The sets of request sources, by number: a request source is in one of them, or in none."""
