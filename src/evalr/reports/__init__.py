"""Everything that a log says about its agents, on one page: on a screen, in a notebook, as JSON or as a frame."""
