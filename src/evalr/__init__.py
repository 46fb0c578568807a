"""evalr measures what AI agents achieve for people, end to end, from the logs that applications already keep."""
