"""Writes the report of a run of cargo-mutants: FOLDER (of runs), EXPLAINED (reasons), REPORT."""

import datetime
import json
import pathlib
import subprocess
import sys

KINDS = [("CaughtMutant", "caught"), ("MissedMutant", "missed"), ("Timeout", "too slow"), ("Unviable", "do not compile")]


def explained(path: pathlib.Path) -> dict[str, str]:
    """Reasons by the mutant's name without its place: `NAME | REASON` a line."""
    reasons = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition(" | ")
            reasons[name.strip()] = reason.strip()
    return reasons


def nameless(name: str) -> str:
    """`crates/x.rs:41:9: replace …` as `crates/x.rs: replace …`: lines move."""
    place, _, what = name.partition(": ")
    return f"{place.split(':')[0]}: {what}"


def main(folder: str, reasons: str, report: str) -> None:
    outcomes = []
    for run in sorted(pathlib.Path(folder).glob("*/mutants.out/outcomes.json")):
        outcomes += [one for one in json.loads(run.read_text())["outcomes"] if one["scenario"] != "Baseline"]
    files: dict[str, dict[str, int]] = {}
    left = []
    for one in outcomes:
        mutant = one["scenario"]["Mutant"]
        counts = files.setdefault(mutant["file"], {kind: 0 for kind, _ in KINDS})
        counts[one["summary"]] += 1
        if one["summary"] in ("MissedMutant", "Timeout"):
            left.append((one["summary"], nameless(mutant["name"])))
    known = explained(pathlib.Path(reasons))
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    total = {kind: sum(counts[kind] for counts in files.values()) for kind, _ in KINDS}
    viable = len(outcomes) - total["Unviable"]
    lines = [
        f"caught {total['CaughtMutant'] + total['Timeout']} of {viable}",
        "",
        "<!-- Written by `make mutants-deep`; do not edit. -->",
        "",
        f"Mutants of cargo-mutants in the files that decide, {datetime.date.today().isoformat()}, at {commit}. One that makes the",
        "tests run for more than a minute longer than they do counts as caught: it hangs them.",
        "",
        "| file | " + " | ".join(word for _, word in KINDS) + " |",
        "|---|" + "---|" * len(KINDS),
        *(f"| `{file}` | " + " | ".join(str(counts[kind]) for kind, _ in KINDS) + " |" for file, counts in sorted(files.items())),
        "",
        "## Not caught",
        "",
    ]
    missed = sorted({name for kind, name in left if kind == "MissedMutant"})
    lines += [f"- `{name}`: {known.get(name, '**not explained**')}" for name in missed] or ["None."]
    slow = sorted({name for kind, name in left if kind == "Timeout"})
    lines += ["", "## Hang the tests", "", *([f"- `{name}`" for name in slow] or ["None."])]
    pathlib.Path(report).write_text("\n".join(lines) + "\n")
    print(f"{report}: {lines[0]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
