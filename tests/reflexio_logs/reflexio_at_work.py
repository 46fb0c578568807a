"""A program that writes a Reflexio log all the time, as an agent at work does, and brings its `-wal` to an end."""

from __future__ import annotations

import random
import sys
import time
from datetime import timedelta
from itertools import count
from pathlib import Path

from reflexio_writing import BEGIN, Writer


def work(path: str) -> None:
    """Write sessions with a verdict each, at any time of two weeks, until killed; say `ready` when there are some."""
    chance = random.Random(7)
    writer = Writer(Path(path), wal=True)
    for number in count():
        user, at = f"u{number % 37}", BEGIN + timedelta(minutes=chance.randrange(16_000))
        writer.session(f"s{number}", user, at)
        writer.outcome(f"s{number}", user, at)
        if number >= 300:
            writer.connection.commit()
            time.sleep(0.002)
        if number == 300:
            sys.stdout.write("ready\n")
            sys.stdout.flush()
        if number % 9 == 0 and number > 300:
            writer.connection.execute(f"PRAGMA wal_checkpoint({chance.choice(['PASSIVE', 'RESTART', 'TRUNCATE'])})")
