"""A simulated machine: physics in, samples out."""
