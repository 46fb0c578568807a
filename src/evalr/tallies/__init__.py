"""Tallies: sums that add up. What is counted, kept small, and merged exactly."""
