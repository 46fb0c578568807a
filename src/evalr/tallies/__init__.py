"""Sums that add: what results leave behind once they have been counted."""
