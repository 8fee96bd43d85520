"""The command `lanecheck`: one module a subcommand, imported only when it is asked for."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence

from suite import __version__
from suite.errors import SuiteError

# Subcommand → (module with add_arguments(parser) and run(args) -> exit status, help).
COMMANDS: dict[str, tuple[str, str]] = {
    "probe": ("suite.cli.probe", "show what is there: GPUs, links hop by hop, NUMA nodes"),
    "record": ("suite.cli.record", "save what the probe reads, to be judged elsewhere"),
    "limits": ("suite.cli.limits", "what a PCIe link could deliver"),
    "report": ("suite.cli.report", "show a run, or rebuild its report from the journal"),
    "baseline": ("suite.cli.baseline", "save, list, show and remove baselines: runs under a name"),
    "compare": ("suite.cli.compare", "what changed between runs or baselines, and whether it is more than noise"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand. Exit status: 0 done, 1 the machine is not right, 4 usage, 5 nothing to show."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = _parser(words)
    arguments = parser.parse_args(words)
    _replace_signs()
    try:
        status = int(importlib.import_module(COMMANDS[arguments.command][0]).run(arguments))
        sys.stdout.flush()  # what cannot be written is told here, and not by the interpreter as it ends
        return status
    except SuiteError as error:
        return _refuse(arguments.command, str(error))
    except BrokenPipeError:  # `lanecheck probe | head`
        sys.stderr.close()
        return 0
    except OSError as error:  # `lanecheck report > /dev/full`
        if error.filename is None:
            _let_go_of_stdout()
        return _refuse(
            arguments.command,
            f"{error.filename or 'the output'} cannot be used ({error.strerror or error}): free it or name another",
        )
    except KeyboardInterrupt:
        return 130


def _refuse(command: str, sentence: str) -> int:
    """Words of a file may be in the sentence: they must not steer the terminal."""
    said = "".join(c if c.isprintable() else "?" for c in sentence)
    print(f"lanecheck {command}: {said}", file=sys.stderr)
    return 4


def _replace_signs() -> None:
    """Signs that the terminal's encoding lacks become '?'. A stream that is no file (in tests) takes every sign."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _let_go_of_stdout() -> None:
    """What is left in its buffer goes nowhere: the interpreter would try once more as it ends, with a traceback."""
    try:
        target = sys.stdout.fileno()
    except (OSError, ValueError):  # it is no file, or closed
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, target)
    os.close(nowhere)


class _Parser(argparse.ArgumentParser):
    """argparse with pytest's exit status for a usage error, so that both commands agree."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.print_usage(sys.stderr)
        self.exit(4, f"{self.prog}: {message}\n")


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="lanecheck", description="What GPU interconnects deliver, and whether that is right.")
    parser.add_argument("--version", action="version", version=f"lanecheck {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    wanted = next((word for word in words if not word.startswith("-")), None)
    for name, (module, help_text) in COMMANDS.items():
        sub = commands.add_parser(name, help=help_text, description=help_text)
        if name == wanted:  # the others stay unimported: `lanecheck limits` answers at once
            importlib.import_module(module).add_arguments(sub)
    return parser
