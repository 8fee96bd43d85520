"""`lanecheck limits`, as it is called."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from suite.cli import main
from suite.records.machine import Machine
from tests.limits import machines as m

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    """A file with two GPUs below one switch, all links at Gen4 x16."""
    return written(tmp_path, m.recorded_at(m.below_one_switch(2), m.GEN4_X16))


def written(folder: Path, machine: Machine) -> str:
    file = folder / "machine.json"
    file.write_bytes(msgspec.json.encode(machine))
    return str(file)


def test_the_json_of_a_link_has_the_promised_shape_in_bytes_per_second(capsys: Capture) -> None:
    assert main(["limits", "--gen", "4", "--width", "16", "--mps", "256", "--mrrs", "512", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert list(answer) == ["raw", "device_to_host", "host_to_device", "bidirectional"]
    assert answer["host_to_device"] == pytest.approx(29.22e9, rel=0.001)
    assert answer["bidirectional"]["device_to_host"] == pytest.approx(27.55e9, rel=0.001)


def test_a_table_is_for_people_and_explains_itself_on_demand(capsys: Capture) -> None:
    assert main(["limits", "--gen", "5", "--mrrs", "4096", "--explain"]) == 0
    text = capsys.readouterr().out
    assert "host to device              58.45 GB/s" in text
    assert "32 GT/s × 128/130 × 16 / 8 = 63.02 GB/s" in text
    assert "SIGCOMM 2018" in text


def test_flit_mode_and_the_engine_change_the_answer(capsys: Capture) -> None:
    assert main(["limits", "--gen", "5", "--flit", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["device_to_host"] == pytest.approx(54.7e9, rel=0.005)
    assert main(["limits", "--gen", "5", "--engine", "sm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["device_to_host"] == pytest.approx(53.07e9, rel=0.001)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gen", "9"], "1, 2, 3, 4, 5, 6, 7"),
        (["--gen", "4", "--width", "3"], "1, 2, 4, 8, 12, 16, 32"),
        (["--gen", "4", "--mps", "100"], "128, 256, 512"),
        (["--gen", "4", "--engine", "dma"], "copy-engine, sm"),
        ([], "give --gen"),
        (["--gen", "4", "--machine", "any", "--gpu", "0"], "--gen describes a link and --machine has its own"),
        (["--width", "8", "--machine", "any", "--gpu", "0"], "--width describes a link"),
        (["--gen", "4", "--gpu", "0"], "--gpu needs --machine FILE"),
    ],
)
def test_a_bad_value_is_one_sentence_and_exit_status_4(words: list[str], said: str, capsys: Capture) -> None:
    assert main(["limits", *words]) == 4
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.err.count("\n") == 1
    assert not shown.out


def test_a_value_that_is_no_number_is_a_usage_error(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["limits", "--gen", "four"])
    assert ended.value.code == 4
    assert "invalid int value" in capsys.readouterr().err


def test_a_gpu_of_a_recorded_machine_is_shown_hop_by_hop(recorded: str, capsys: Capture) -> None:
    assert main(["limits", "--machine", recorded, "--gpu", "0", "--explain"]) == 0
    text = capsys.readouterr().out
    assert "0000:01:00.0 to 0000:00:01.0     recorded Gen4 x16   could be Gen4 x16" in text
    assert "host_to_device      29.22 GB/s" in text
    assert "host_to_device: 0000:10:00.0 is recorded at 16 GT/s x16" in text


def test_a_pair_of_a_recorded_machine_is_shown_with_and_without_p2p(recorded: str, capsys: Capture) -> None:
    assert main(["limits", "--machine", recorded, "--pair", "0", "1"]) == 0
    text = capsys.readouterr().out
    assert "Pair: PIX; P2P not read" in text
    assert "p2p_off" in text


def test_the_json_of_a_machine_holds_whole_limits(recorded: str, capsys: Capture) -> None:
    assert main(["limits", "--machine", recorded, "--gpu", "1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["device_to_host"]["now"] == pytest.approx(28.81e9, rel=0.001)
    assert answer["device_to_host"]["basis"] == "read"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gpu", "7"], "GPU 7 is not in this machine: it has GPUs 0, 1"),
        (["--pair", "0", "0"], "two different GPUs"),
        ([], "name one GPU with --gpu N or two with --pair A B"),
        (["--gpu", "0", "--pair", "0", "1"], "name one GPU with --gpu N or two with --pair A B"),
    ],
)
def test_a_gpu_that_is_not_there_is_one_sentence(recorded: str, words: list[str], said: str, capsys: Capture) -> None:
    assert main(["limits", "--machine", recorded, *words]) == 4
    assert said in capsys.readouterr().err


def test_a_machine_s_limits_say_whether_it_is_recorded_or_simulated(recorded: str, capsys: Capture) -> None:
    assert main(["limits", "--machine", recorded, "--gpu", "0"]) == 0
    assert capsys.readouterr().out.startswith("Recorded machine (")
    shipped = Path(__file__).parents[1] / "data" / "machines" / "2xpcie.json"
    assert main(["limits", "--machine", str(shipped), "--pair", "0", "1", "--explain"]) == 0
    assert capsys.readouterr().out.startswith("SIMULATED machine (2xpcie.json): ")


def test_where_no_limit_is_known_the_row_says_why(tmp_path: Path, capsys: Capture) -> None:
    unknown = m.recorded_at(m.virtual_h200(), m.LinkState())
    assert main(["limits", "--machine", written(tmp_path, unknown), "--gpu", "0"]) == 0
    assert "–" in capsys.readouterr().out


def test_limits_of_a_link_import_nothing_heavy() -> None:
    """`lanecheck limits` answers at once: no reader of machines, no test framework, no arrays."""
    code = (
        "import sys; from suite.cli import main; main(['limits', '--gen', '4']);"
        "print(sorted(n for n in ('torch', 'cupy', 'numpy', 'scipy', 'matplotlib', 'pytest', 'suite.probe.recording')"
        " if n in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.endswith("[]\n")
