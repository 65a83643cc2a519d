#!/usr/bin/env python3
"""Says what a run of the tests found: failed tests with their first words, those that needed another try,
and the slowest. Arguments: the JUnit files that cargo-nextest wrote; one that is missing is passed over, for a
stage before it failed."""

import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

SLOWEST = 10
WORDS = 6


def first_words(outcome, case):
    """The panic, or else the first lines that the test printed."""
    text = "\n".join(filter(None, [case.findtext("system-err"), case.findtext("system-out"), outcome.text]))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    begin = next((at for at, line in enumerate(lines) if re.search(r"panicked at|^error", line)), 0)
    said = [outcome.get("message") or outcome.get("type") or ""] + lines[begin : begin + WORDS]
    return [line[:300] for line in said if line]


def main():
    cases = []
    for path in map(Path, sys.argv[1:]):
        if path.exists():
            for suite in xml.parse(path).getroot().iter("testsuite"):
                cases += [(f"{suite.get('name')} {case.get('name')}", case) for case in suite.iter("testcase")]
    if not cases:
        print("== tests: no report of any; it is cargo-nextest that writes one")
        return
    for name, case in cases:
        for outcome in [found for kind in ("failure", "error") for found in case.findall(kind)]:
            print(f"== FAILED {name}")
            print("".join(f"     {line}\n" for line in first_words(outcome, case)), end="")
        tries = case.findall("flakyFailure") + case.findall("flakyError")
        if tries:
            print(f"== FLAKY {name}: passed after {len(tries)} that failed")
            print("".join(f"     {line}\n" for line in first_words(tries[0], tries[0])), end="")
    slowest = sorted(cases, key=lambda pair: -float(pair[1].get("time") or 0))
    print(f"== tests: {len(cases)}, the slowest:")
    for name, case in slowest[:SLOWEST]:
        print(f"     {float(case.get('time') or 0):7.1f} s  {name}")


main()
