"""lanecheck: measures GPU interconnects, computes what they could deliver, and judges the difference."""

__version__ = "0.1.0"
