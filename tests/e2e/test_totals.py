"""The gate's last line is a promise: what it counts has to be what the runners said."""

import pathlib
import subprocess
import sys

import pytest

TOTALS = pathlib.Path(__file__).resolve().parents[1] / "setup" / "totals.py"


def totals(tmp_path, *logs):
    paths = []
    for number, text in enumerate(logs):
        paths.append(tmp_path / f"{number}.log")
        paths[-1].write_text(text)
    ended = subprocess.run([sys.executable, TOTALS, *paths], capture_output=True, text=True, timeout=60)
    return ended.stdout.splitlines()[-1], ended.returncode


@pytest.mark.parametrize(
    "log, said",
    [
        ("     Summary [   0.079s] 18 tests run: 18 passed, 0 skipped\n", ("18 passed, 0 failed", 0)),
        ("     Summary [   9.1s] 18 tests run: 15 passed (2 slow), 2 failed, 1 timed out, 3 skipped\n", ("15 passed, 3 failed", 1)),
        ("     Summary [   9.1s] 7/18 tests run: 6 passed, 1 failed, 0 skipped\n", ("6 passed, 1 failed", 1)),
        ("test result: ok. 5 passed; 0 failed; 0 ignored\ntest result: FAILED. 1 passed; 2 failed; 0 ignored\n", ("6 passed, 2 failed", 1)),
        ("======= 2 failed, 54 passed, 1 warning in 27.67s =======\n", ("54 passed, 2 failed", 1)),
        ("590 passed in 65.20s (0:01:05)\n", ("590 passed, 0 failed", 0)),
        ("3 passed, 2 errors in 1.20s\n", ("3 passed, 2 failed", 1)),
    ],
    ids=["nextest", "nextest-timeouts", "nextest-cut-short", "cargo-test", "pytest", "pytest-quiet", "pytest-errors"],
)
def test_each_runners_closing_line_is_counted(tmp_path, log, said):
    assert totals(tmp_path, f"chatter\n{log}") == said


def test_the_logs_are_summed(tmp_path):
    assert totals(tmp_path, "4 passed in 1.00s\n", "     Summary [ 1s] 3 tests run: 3 passed, 0 skipped\n") == ("7 passed, 0 failed", 0)


def test_a_run_that_died_before_it_could_count_is_a_failure(tmp_path):
    assert totals(tmp_path, "4 passed in 1.00s\n", "Segmentation fault\n") == ("4 passed, 1 failed", 1)


def test_a_run_of_no_tests_at_all_is_no_success(tmp_path):
    assert totals(tmp_path, "no tests ran in 0.01s\n")[1] == 1
