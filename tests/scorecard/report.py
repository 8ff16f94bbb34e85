"""Writes docs/scorecard.md and its raw data, docs/scorecard/GATEWAY-DIALECT.json, from results alone; nothing of it is written by hand."""

import json

import checker
import launch
import scenarios

METER_ENTRIES, CALL_ENTRIES = 40, 16


def entry(gateway, dialect, scenario, record, verdict, seen, after):
    """One result, with as much of its record as the files have room for."""
    kept = {key: record[key] for key in ("seconds", "load", "memory", "open", "published", "overrun", "trouble") if key in record}
    kept["calls"] = record.get("calls", [])[:CALL_ENTRIES]
    kept["meter"] = record.get("meter", [])[:METER_ENTRIES]
    kept["requests"] = len(record.get("meter", []))
    return {"gateway": gateway, "dialect": dialect, "scenario": scenario.id, "verdict": verdict, "seen": seen, "after": after, "record": kept}


def write(out, conditions, results, seconds, whole):
    """Puts results in the place of those that the raw data has of the same scenarios, and writes the page of all of them."""
    raw = out / "scorecard"
    raw.mkdir(parents=True, exist_ok=True)
    columns = [(gateway, dialect) for gateway, dialects in launch.GATEWAYS.items() for dialect in dialects]
    order = [scenario.id for scenario in scenarios.ALL]
    everything = {}
    for column in columns:
        path = raw / f"{column[0]}-{column[1]}.json"
        new = {
            found["scenario"]: {**found, "date": conditions["date"], "commit": conditions["commit"]}
            for found in results
            if (found["gateway"], found["dialect"]) == column
        }
        old = {}
        if path.exists():
            data = json.loads(path.read_text())
            old = {found["scenario"]: found for found in data["results"] if found["scenario"] in order}
        merged = {**old, **new}
        if not merged:
            continue
        everything[column] = merged
        if new:
            about = {**conditions, "versions": {column[0]: conditions["versions"][column[0]]}, "seconds": seconds, "whole": whole}
            rows = [merged[name] for name in order if name in merged]
            # A result a line: small, and two runs can be compared.
            lines = ",\n".join(json.dumps(row, separators=(",", ":"), ensure_ascii=True) for row in rows)
            path.write_text('{"about":' + json.dumps(about) + ',\n"results":[\n' + lines + "\n]}\n")
    abouts = {column: json.loads((raw / f"{column[0]}-{column[1]}.json").read_text())["about"] for column in everything}
    (out / "scorecard.md").write_text(page(everything, abouts))


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows])


def cell(found):
    return {None: "-", checker.PASS: "pass", checker.FAIL: "**fail**", checker.NOT_APPLICABLE: "n/a"}[found and found["verdict"]]


TITLES = {"litellm": "LiteLLM", "portkey": "Portkey", "sdk": "bare SDK"}


def title(column):
    return f"Turnkeep {column[1]}" if column[0] == "turnkeep" else TITLES[column[0]]


def answered_in(found):
    """The seconds of a result's first call, where the result is a pass."""
    if found["verdict"] != checker.PASS or not found["record"]["calls"]:
        return None
    call = found["record"]["calls"][0]
    return round(call["ended"] - call["sent"], 1)


def grouped(pairs):
    """{text: the dialects it was said of}, in the order of the first of each."""
    out = {}
    for text, dialect in pairs:
        out.setdefault(text, []).append(dialect)
    return out


def losses(everything):
    """Where Turnkeep loses: what it fails, what it leaves behind, and where a peer that passes too is clearly faster."""
    ours = [column for column in everything if column[0] == "turnkeep"]
    peers = [column for column in everything if column[0] != "turnkeep"]
    out = []
    for scenario in scenarios.ALL:
        results = {column: everything[column][scenario.id] for column in [*ours, *peers] if scenario.id in everything[column]}
        good = [title(column) for column in peers if column in results and results[column]["verdict"] == checker.PASS]
        who = f"{', '.join(good)} pass{'es' if len(good) == 1 else ''}" if good else "no peer passes"
        failed = [(results[c]["seen"], c[1]) for c in ours if c in results and results[c]["verdict"] == checker.FAIL]
        out += [f"- `{scenario.id}` ({', '.join(dialects)}): {seen}; {who}" for seen, dialects in grouped(failed).items()]
        behind = [
            (f"{name}: {seen}", column[1])
            for column in ours
            if column in results
            for name, (verdict, seen) in results[column]["after"].items()
            if verdict == checker.FAIL
        ]
        out += [f"- after `{scenario.id}` ({', '.join(dialects)}), {text}" for text, dialects in grouped(behind).items()]
        mine = [took for took in (answered_in(results[column]) for column in ours if column in results) if took is not None]
        theirs = [(answered_in(results[column]), title(column)) for column in peers if column in results]
        theirs = [(took, name) for took, name in theirs if took is not None]
        if mine and theirs and scenario.side == "upstream" and min(mine) > min(theirs)[0] + 1:
            best, name = min(theirs)
            out.append(f"- `{scenario.id}`: the first call took {min(mine)} s at best, with {name} {best} s")
    return out


ABOUT = """\
<!-- Written by `make scorecard`; do not edit. -->

# Scorecard

Published scenarios, run against Turnkeep in each of its four dialects and against peers from the registries in the one they share.
One [checker](../tests/scorecard/checker.py) judges all, from what the caller and the upstream saw, and knows no product. The
scenarios, the configurations and the checker are in [tests/scorecard](../tests/scorecard); it is run by hand, and what it wrote is
here as it came out.
"""

CONDITIONS = f"""\
- Loopback only; each scenario has a gateway, an upstream and a folder of its own, and ends within {scenarios.SCENARIO_SECONDS} s
- Configured alike where there is a setting: {scenarios.PATIENCE_SECONDS} s of patience for an attempt, {scenarios.DEADLINE_SECONDS} s for a call; two accounts, a fallback and a larger
  model (Portkey's configuration has no place for the last). Retries, fallbacks and cooldowns are on as each one's documentation has
  them; every setting is in [gateways](../tests/scorecard/gateways) with its source. The bare SDK has one account and its own two retries
- Peers are asked in Chat Completions alone, which each takes for its own; other dialects of theirs were not measured. LiteLLM is the
  newest version whose parts the registry had, Portkey's gateway runs with two dependencies held where its streams work
- One run on a shared machine: a single verdict near a bound in time can differ in the next
"""

OURS = """\
Some scenarios ask for what is a feature of ours (`duplicate-key`, `reset-in-final-write` and the one after it); a peer that never
claimed it fails there too. `reset-and-ask-at-once` is a race: a dialect of ours that won it in this run can lose it in the next, and
has. We chose the list, and wrote it knowing our own design: read what was seen, not only the sums.
"""

TERMS = """\
A call is *whole* when it is answered with 200, has every word that its one attempt wrote, once and in order, and a finish; the caller
is *told* by an error status, an error in the stream, or a broken connection.
"""

AFTER = """\
*Standing*: the next turn, with everything well again, is answered whole within 5 s. *Slots*: nothing is open at the upstream, and
where the gateway tells, no slot is held. *Memory*: resident memory of its processes has grown by 32 MiB at most since the warm-up.
*Ledger*: the attempts that the gateway wrote down are the requests that the upstream metered, and the exact tokens those it billed; n/a
where none is kept in this configuration (LiteLLM's needs a database; Portkey's open-source gateway has none). Passes of those that
apply, and the largest growth:
"""


def page(everything, abouts):
    columns = list(everything)
    newest = max(abouts.values(), key=lambda about: about["date"])
    # A part that was run later has a date and a commit of its own.
    runs = sorted({f"{found['date']} (commit {found['commit']})" for column in columns for found in everything[column].values()})
    versions = {column[0]: abouts[column]["versions"][column[0]] for column in columns}
    loads = [found["record"]["load"] for column in columns for found in everything[column].values() if "load" in found["record"]]
    raw = ", ".join(f"[{title(column)}](scorecard/{column[0]}-{column[1]}.json)" for column in columns)
    sections = [
        ABOUT,
        "## Conditions\n",
        f"- Date: {', '.join(runs)}; {newest['machine']}; Python {newest['python']}, Node {newest['node']}",
        *(f"- {TITLES.get(name, 'Turnkeep')}: {value}" for name, value in versions.items()),
        f"- Load average when scenarios began: {min(loads)} to {max(loads)}, other programs' too; bounds in time leave {scenarios.SLACK_SECONDS} s for that",
        CONDITIONS,
        "## Results\n",
        table(["scenario", *(title(column) for column in columns)], rows_of(everything, columns)),
        "\n## Where we lose\n",
        *(losses(everything) or ["Nowhere in this run."]),
        "",
        OURS,
        "## The scenarios\n",
        TERMS,
        table(["scenario", "side", "what happens", "what must hold"], [[f"`{s.id}`", s.side, s.does, s.holds] for s in scenarios.ALL]),
        "\n## After each scenario\n",
        AFTER,
        table(["after", *(title(column) for column in columns)], after_rows(everything, columns)),
        "",
        *after_failures(everything, columns),
        "\n## What was seen\n",
        *(seen_of(scenario, everything, columns) for scenario in scenarios.ALL),
        "## Raw data\n",
        "A file for each column, with the calls as the caller saw them and the requests as the upstream metered them:",
        f"{raw}.",
    ]
    return "\n".join(sections) + "\n"


def seen_of(scenario, everything, columns):
    """What was seen in one scenario, those alike together."""
    groups = {}
    for column in columns:
        found = everything[column].get(scenario.id)
        if found and found["verdict"] != checker.NOT_APPLICABLE:
            groups.setdefault((found["verdict"], found["seen"]), []).append(title(column))
    lines = [f"- {', '.join(names)}: {verdict}. {seen}" for (verdict, seen), names in groups.items()]
    return "\n".join([f"### {scenario.id}", "", *lines, ""])


def rows_of(everything, columns):
    rows = []
    for side in ("upstream", "caller"):
        for scenario in (scenario for scenario in scenarios.ALL if scenario.side == side):
            rows.append([f"`{scenario.id}`", *(cell(everything[column].get(scenario.id)) for column in columns)])
    sums = ["passed"]
    for column in columns:
        verdicts = [found["verdict"] for found in everything[column].values()]
        sums.append(f"{verdicts.count(checker.PASS)} of {len(verdicts) - verdicts.count(checker.NOT_APPLICABLE)}")
    return rows + [sums]


def after_rows(everything, columns):
    rows = []
    for name in ("standing", "slots", "memory", "ledger"):
        row = [name]
        for column in columns:
            found = [entry["after"][name] for entry in everything[column].values() if name in entry["after"]]
            applies = [verdict for verdict, _ in found if verdict != checker.NOT_APPLICABLE]
            text = f"{applies.count(checker.PASS)} of {len(applies)}" if applies else "n/a"
            grown = [entry["record"]["memory"] for entry in everything[column].values() if entry["record"].get("memory")]
            if name == "memory" and grown and applies:
                text += f", {max(one['after'] - one['before'] for one in grown):+.0f} MiB"
            row.append(text)
        rows.append(row)
    return rows


def after_failures(everything, columns):
    return [
        f"- {title(column)}, `{scenario.id}`, {name}: {seen}"
        for column in columns
        for scenario in scenarios.ALL
        for name, (verdict, seen) in everything[column].get(scenario.id, {}).get("after", {}).items()
        if verdict == checker.FAIL
    ]
