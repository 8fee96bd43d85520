"""Do the links train to full speed under load, and stay free of errors?"""

from suite.plugin import Check


def test_under_load(check: Check, gpu: int) -> None:
    """Both directions for at least 0.5 s, while every hop above the GPU is watched."""
    check("link_under_load", gpus=(gpu,))
