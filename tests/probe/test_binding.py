"""The names that the probe asks NVML's Python binding for exist there: a missing one would read as 'not supported'."""

import re
from pathlib import Path

import pytest

pynvml = pytest.importorskip("pynvml", reason="needs nvidia-ml-py")
PROBE = Path(__file__).parents[2] / "suite" / "probe"
# Asked for where drivers or bindings differ: the older or newer name stands beside it.
OPTIONAL = {"DeviceGetCurrentClocksThrottleReasons", "DeviceGetCurrentClocksEventReasons"}


def asked(module: str) -> set[str]:
    source = (PROBE / module).read_text()
    plain = set(re.findall(r'"((?:Device|System|Event)[A-Z]\w+)"', source))
    links = {f"DeviceGet{name}" for name in re.findall(r'"((?:Curr|Max|GpuMax)Pcie\w+)"', source)}
    return (plain | links) - OPTIONAL


@pytest.mark.parametrize("module", ["nvml.py", "nvml_watch.py"])
def test_every_nvml_call_exists_in_the_binding(module: str) -> None:
    names = asked(module)
    assert names
    assert [name for name in sorted(names) if not hasattr(pynvml, f"nvml{name}")] == []
