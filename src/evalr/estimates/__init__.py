"""From a tally to a number with its interval: one file per question."""
