"""Adds up what the test runners say of themselves, and prints `N passed, M failed` as the last word.

usage: totals.py LOG...

Knows the closing lines of nextest, `cargo test` and pytest. A log without one is a run that died before it could count,
so it is reported as one failure rather than passed over. A pytest error (a broken fixture, say) counts as a failure.
Exit status 1 when anything failed or nothing ran.
"""

import re
import sys

ANSI = re.compile(r"\x1b\[[0-9;]*m")
NEXTEST = re.compile(r"^\s*Summary \[.*?\]\s+(?:\d+/)?\d+ tests? run: (.*)$")
CARGO_TEST = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed;")
PYTEST = re.compile(r"^=* ?((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s.*?=*$")


def words(text):
    """`3 passed (1 slow), 2 failed` -> {"passed": 3, "failed": 2}."""
    text = re.sub(r"\([^)]*\)", "", text)
    return {word: int(count) for count, word in re.findall(r"(\d+) ([a-z]+)", text)}


def count(lines):
    """(passed, failed) of one log, or None when no runner closed it."""
    passed = failed = 0
    seen = False
    for line in lines:
        line = ANSI.sub("", line).rstrip()
        if match := NEXTEST.match(line):
            said = words(match[1])
            passed += said.get("passed", 0)
            failed += said.get("failed", 0) + said.get("timed", 0) + said.get("exec", 0)
        elif match := CARGO_TEST.match(line):
            passed += int(match[1])
            failed += int(match[2])
        elif match := PYTEST.match(line):
            said = words(match[1])
            passed += said.get("passed", 0)
            failed += said.get("failed", 0) + said.get("error", 0) + said.get("errors", 0)
        else:
            continue
        seen = True
    return (passed, failed) if seen else None


def main(paths):
    passed = failed = 0
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as log:
            said = count(log)
        if said is None:
            print(f"{path}: the runner ended without a summary; counted as one failure")
            said = (0, 1)
        passed += said[0]
        failed += said[1]
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
