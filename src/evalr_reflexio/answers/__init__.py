"""Answers: does Reflexio help, by how much, how sure are we, and which learnings help or harm? One pass over a log."""
