"""What a page shows of a Reflexio log: the answers of `Impact` as tiles, plots, tables and cards."""
