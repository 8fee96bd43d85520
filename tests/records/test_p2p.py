"""P2P statuses in words."""

from suite.probe.nvml import P2P_STATUS
from suite.records.p2p import meaning


def test_every_status_that_nvml_has_is_explained() -> None:
    assert all("does not know" not in meaning(word) for word in P2P_STATUS.values() if word != "U")


def test_statuses_that_are_missing_or_new_are_explained_too() -> None:
    assert meaning(None) == "the driver did not answer"
    assert "'7'" in meaning("7")
