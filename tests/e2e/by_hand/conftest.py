"""The programs of the folder above are on the path here, too; and what came out is written down, if TURNKEEP_MATRIX names a file."""

import datetime
import json
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

COLUMNS = [
    *((f"loop over {upstream}", "tool_loop", upstream) for upstream in ("chat", "responses", "messages", "gemini")),
    ("429", "rate_limit", None),
    ("529", "fault", "overload"),
    ("cut before", "fault", "a cut before any answer"),
    ("cut within", "fault", "a cut in the answer"),
    ("error within", "fault", "an error in the answer"),
    ("resumed", "resumed", None),
    ("sub-agent", "sub_agent", None),
]
FAILED = "**failed**"
# (name of the CLI, column) -> what came out.
CAME_OUT = {}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when != "call" or "by_hand" not in report.nodeid:
        return
    given = item.callspec.params
    for column, part, about in COLUMNS:
        if part in item.name and about in (None, given.get("fault"), given["upstream"] if part == "tool_loop" else None):
            told = dict(item.user_properties).get("came_out", "ok")
            cell = given["name"], column
            # One that failed stays: some columns are of several tests.
            if CAME_OUT.get(cell) != FAILED:
                CAME_OUT[cell] = told if report.passed else FAILED


def pytest_sessionfinish(session):
    if CAME_OUT and (path := os.environ.get("TURNKEEP_MATRIX")):
        pathlib.Path(path).write_text(page())


def page():
    versions = json.loads((HERE.parent / "agents" / "versions.json").read_text())
    heads = [column for column, _, _ in COLUMNS]
    lines = [
        "# Every agent CLI, every upstream, every fault",
        "",
        f"Written by `make test-clients ALL=1` on {datetime.date.today()}.",
        "A fault happens once, over the first upstream of another dialect: *529* an overload, *cut before* and *cut within* the",
        "answer a connection that is reset, *error within* an error event of the provider's. *ok* then means that the turn was",
        "answered all the same; *error* that the program ended with an error of its own, and not with a short answer. *resumed*: a",
        "second run that takes the session up again, whose history reached the model. *sub-agent*: over every upstream of another",
        "dialect, a sub-agent that the CLI's own tool starts is answered, and its words reach the model in the next turn of its parent.",
        "Sub-agents are not driven (*-*) where a CLI speaks another dialect than its usual one. Those of Codex with a model that it knows",
        "(`codex-known`) get no further than a Responses upstream: its agents write to each other in items (`agent_message`) that are",
        "refused by name elsewhere.",
        "",
        "Versions: " + ", ".join(f"{name} {version}" for agent in versions.values() for name, version in agent.items()) + ".",
        "",
        "| CLI, dialect | " + " | ".join(heads) + " |",
        "|---|" + "---|" * len(heads),
    ]
    for name in dict.fromkeys(name for name, _ in CAME_OUT):
        lines.append(f"| {name} | " + " | ".join(CAME_OUT.get((name, head), "-") for head in heads) + " |")
    return "\n".join(lines) + "\n"
