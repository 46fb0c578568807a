"""The traces page: a log's conversations with what passes said of them, served to a browser on this machine."""
