"""A run as JUnit XML, for build servers: a group is a suite, a case is a test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from suite.records.run import Finding, Result, Run, Status
from suite.report import banner
from suite.report.tables import groups, words

# What XML 1.0 cannot hold at all, not even escaped.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(run: Run, findings: Sequence[Finding] = ()) -> str:
    """FAIL is a failure, UNAVAILABLE and NOT_SAMPLED are skipped; WARN and INDETERMINATE pass with a system-out.
    findings: those of the machine, which no case carries, are a suite of their own."""
    shown = [finding for finding in findings if not finding.cases and finding.status != "PASS"]
    totals = _counted([*map(words.status, run.results), *(finding.status for finding in shown)])
    root = ElementTree.Element("testsuites", totals | {"name": banner.titled(run, "lanecheck")})
    if shown:
        root.append(_machine(shown))
    for name in groups.names(run):
        root.append(_suite(run, name))
    if not run.complete:
        root.append(_broken_off(run))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _machine(shown: Sequence[Finding]) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", {"name": "machine"} | _counted([finding.status for finding in shown]))
    for finding in shown:
        name = legal(f"machine/{finding.cause}/{finding.subject}")
        case = ElementTree.SubElement(suite, "testcase", {"classname": "machine", "name": name, "time": "0"})
        text = legal("\n".join(line for line in (finding.sentence, finding.advice) if line))
        if finding.status == "FAIL":
            ElementTree.SubElement(case, "failure", {"message": legal(finding.sentence)}).text = text
        else:
            ElementTree.SubElement(case, "system-out").text = f"{finding.status}\n{text}"
    return suite


def _suite(run: Run, name: str) -> ElementTree.Element:
    results = groups.members(run, name)
    attributes = {"name": legal(name)} | _totals(results)
    if run.started:
        attributes["timestamp"] = legal(run.started)
    suite = ElementTree.Element("testsuite", attributes)
    for result in results:
        suite.append(_case(result))
    return suite


def _case(result: Result) -> ElementTree.Element:
    attributes = {"classname": legal(result.group), "name": legal(result.case), "time": f"{sum(result.samples_s):.6f}"}
    case = ElementTree.Element("testcase", attributes)
    status = words.status(result)
    if status == "FAIL":
        _add(case, "failure", result)
    elif status in ("UNAVAILABLE", "NOT_SAMPLED"):
        _add(case, "skipped", result)
    elif status != "PASS":
        ElementTree.SubElement(case, "system-out").text = legal("\n".join([status or "not judged", _details(result)]))
    return case


def _broken_off(run: Run) -> ElementTree.Element:
    """A build server must not take a run for whole that was broken off."""
    suite = ElementTree.Element(
        "testsuite", {"name": "run", "tests": "1", "failures": "0", "errors": "1", "skipped": "0"}
    )
    case = ElementTree.SubElement(suite, "testcase", {"classname": "run", "name": "complete", "time": "0"})
    said = f"{len(run.results)} of {run.planned} planned cases are here; the run was broken off"
    ElementTree.SubElement(case, "error", {"message": said})
    return suite


def _add(case: ElementTree.Element, tag: str, result: Result) -> None:
    ElementTree.SubElement(case, tag, {"message": legal(words.sentence(result))}).text = legal(_details(result))


def _details(result: Result) -> str:
    verdict = result.verdict
    lines = [*(verdict.evidence or (verdict.cause,)), verdict.advice or ""] if verdict else []
    if result.error:
        lines += [result.error.message, *result.error.said]
    return "\n".join(line for line in lines if line)


def _totals(results: Sequence[Result]) -> dict[str, str]:
    return _counted([words.status(result) for result in results])


def _counted(found: Sequence[Status | None]) -> dict[str, str]:
    skipped = found.count("UNAVAILABLE") + found.count("NOT_SAMPLED")
    return {"tests": str(len(found)), "failures": str(found.count("FAIL")), "errors": "0", "skipped": str(skipped)}


def legal(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return _ILLEGAL.sub("?", text)
