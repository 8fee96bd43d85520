"""The catalogue as Markdown: docs/verdicts.md is this text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from suite.judge.cause import Cause
from suite.judge.thresholds import DEFAULT, table

HEAD = """# Verdicts

Made by `python -m suite.judge.catalogue > docs/verdicts.md`; a test keeps the two equal.

| status | meaning | the pytest case |
|---|---|---|
| PASS | the path does what it can do | passes |
| WARN | it works, and something about it is worth a look | passes and is listed; fails with `--strict-verdicts` |
| FAIL | something is wrong: the verdict says what was measured, what the limit is, why, and what to do | fails |
| INDETERMINATE | what was seen does not tell | passes and is listed; fails with `--strict-verdicts` |
| UNAVAILABLE | this cannot be measured here, with the reason | is skipped |
| NOT_SAMPLED | another case, named, stands for this one | is skipped |

A case's status is final when the case ends. Findings group the cases of a run by their root cause and change no status.
What is said of the machine as a whole has no case: a FAIL among it fails the run (and with `--strict-verdicts` a WARN),
the headline says it, and JUnit has it as a test of its own.
Words in braces are filled in from the case.

## Exit status

| status | `pytest benchmarks/` |
|---|---|
| 0 | the machine is right: no FAIL (WARN and INDETERMINATE are listed; with `--strict-verdicts` they fail) |
| 1 | at least one FAIL, an error in a benchmark, or a regression against a baseline |
| 2 | interrupted: Ctrl-C, SIGTERM or SIGHUP (the terminal was closed); the run is kept and called incomplete |
| 4 | usage: an option, a manifest or a threshold that cannot be, said in one sentence before anything is measured |
| 5 | nothing could be measured here, or with `--baseline` nothing could be compared |

`--junitxml FILE` carries `verdict`, `cause`, `measured`, `limit` and `advice` of every case as properties; a FAIL's
message has the whole sentence. pytest's own lists leave verdicts out, since one link can make a hundred of them: `-rf`
lists them, `-v` says each one's evidence and next step.

## What is right for this machine

`lanecheck probe --write-expect machine.json` drafts a manifest, `pytest benchmarks/ --expect machine.json` judges by
it:

    {"gpus": {"0000:21:00.0": {"speed_gts": 32.0, "width": 16, "numa_node": 0}},
     "floors": {"host_copy/host_to_device/gpu0/node0/256MiB": 52e9, "allreduce/nccl/*/256MiB": 38e9}}

A GPU is named by its PCI address or by its physical slot (`/sys/bus/pci/slots`); what is left out is not checked. Speed
and width are those of its own link under load: less is a FAIL, as much is a PASS even where both ends could do more. A
floor is the least bandwidth of a case in bytes per second; `*` stands for anything. One that fits no case of this
machine, in quick or in full, is a usage error; one that only this run left out is named at its end. The run keeps the
manifest.

Every threshold at the end of this page can be set in `pyproject.toml` (or as lines in `pytest.ini`):

    [tool.pytest.ini_options]
    lanecheck_thresholds = ["spread = 0.2", "far_warn = 0.6"]
"""


def render(groups: Sequence[tuple[str, Sequence[Cause]]]) -> str:
    """The whole document, with a newline at its end."""
    return "\n".join([HEAD, *_causes(groups), *_thresholds()]) + "\n"


def _causes(groups: Sequence[tuple[str, Sequence[Cause]]]) -> Iterator[str]:
    for title, causes in groups:
        yield f"## {title}\n"
        for cause in causes:
            yield from _cause(cause)


def _cause(cause: Cause) -> Iterator[str]:
    yield f"### {cause.name}: {cause.status}\n"
    yield f"- fires when {cause.fires}"
    yield f"- says: {cause.finding}"
    if cause.advice:
        yield f"- advice: {cause.advice}"
    if cause.confirm:
        yield f"- confirmed by: {cause.confirm}"
    yield ""


def _thresholds() -> Iterator[str]:
    yield "## Thresholds\n"
    yield "| name | value | reason | source |"
    yield "|---|---|---|---|"
    for name, value, reason, source in table(DEFAULT):
        yield f"| {name} | {value} | {reason} | {source} |"
