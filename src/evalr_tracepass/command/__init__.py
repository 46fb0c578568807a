"""`evalr tracepass`: its subcommands, what they are asked for, and what they print."""
