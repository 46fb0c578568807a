"""How rows come to classifiers, and what they said comes back."""
