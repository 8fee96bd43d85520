"""The frozen records that travel between the rooms. They hold base units; unknown is None, never 0."""
