"""Where passes and their results are kept, without any text of a trace."""
