"""The one judge of every gateway: what the caller's and the upstream's records say, and nothing else.

`judge` gives (verdict, what was seen). It knows no gateway's name, header or error code: a rule that only one product could pass by
its own means is not in here. What must hold is written in `scenarios.py`; each function here is that sentence.

Words: a call is *whole* when it was answered with 200, its words are one run from the first to the last that its attempt wrote, and it
finished; *told* when the caller can tell that it failed: an error status, an error in the stream, or a broken connection.
"""

import scenarios

PASS, FAIL, NOT_APPLICABLE = "pass", "fail", "n/a"
BOUND = scenarios.DEADLINE_SECONDS + scenarios.SLACK_SECONDS
LEFT_SECONDS = 5


class Broken(Exception):
    """A rule does not hold; the text says what was seen."""


def must(holds, seen):
    if not holds:
        raise Broken(seen)


def seconds(call):
    return round((call["ended"] or 0) - call["sent"], 1)


def told(call):
    """Whether the caller can tell that the call failed."""
    return bool(call["error"]) or (call["status"] or 0) >= 400 or call["end"] in ("cut", "reset") or call["not_json"] > 0


def said(call):
    """The call in a few words, for the note."""
    if call["status"] is None:
        return f"no answer ({call['end']}) after {seconds(call)} s"
    words = "; ".join(f"words {first}-{last} of attempt {attempt}" for attempt, first, last in call["runs"][:4]) or "no words"
    finish = f", finish {call['finish']}" if call["finish"] else ", no finish"
    error = ", an error" if call["error"] else ""
    return f"status {call['status']}, {words}{finish}{error}, {call['end']}, {seconds(call)} s"


def whole(call, meter):
    """Why a call is not whole, or None."""
    if call["status"] != 200 or call["error"] or call["end"] not in ("complete",):
        return said(call)
    if call["finish"] is None or len(call["runs"]) != 1:
        return said(call)
    attempt, first, last = call["runs"][0]
    wrote = next((entry for entry in meter if entry["n"] == attempt), None)
    if wrote is None or first != 1 or last != wrote["words"] or not wrote["completed"]:
        return said(call)
    return None


def all_whole(record, calls=None):
    calls = record["calls"] if calls is None else calls
    bad = [(n, why) for n, why in ((n, whole(call, record["meter"])) for n, call in enumerate(calls, 1)) if why]
    must(not bad, f"{len(bad)} of {len(calls)} turns not answered whole; turn {bad[0][0] if bad else 0}: {bad[0][1] if bad else ''}")


def of_role(record, *roles):
    return [entry for entry in record["meter"] if entry["role"] in roles]


def requests(record, count):
    asked = len(record["meter"])
    must(asked == count, f"{asked} requests reached the upstream, not {count}")


def honest(call, record):
    """The caller can tell, or the answer goes on to a true end without a hole and without a word twice."""
    if told(call):
        must(not (call["finish"] == "stop" and call["done"] and not call["error"]), f"a success over a broken answer: {said(call)}")
        return f"told: {said(call)}"
    if whole(call, record["meter"]) is None:
        return "begun anew before the caller saw anything, and whole"
    # What a gateway that goes on elsewhere would have to give: the words that were there, then another attempt's from its first on.
    runs = call["runs"]
    if len(runs) == 2 and runs[0][1] == 1 and runs[1][1] == 1:
        rest = next((entry for entry in record["meter"] if entry["n"] == runs[1][0]), None)
        if rest and rest["completed"] and rest["words"] == runs[1][2] and call["finish"]:
            # The second attempt said everything from its start, so the caller has words of two answers as one.
            raise Broken(f"two answers sewn together as one success: {said(call)}")
    must(call["finish"] is None and not call["done"], f"a success over a broken answer: {said(call)}")
    return f"no success was made up: {said(call)}"


def retry_after(record):
    all_whole(record)
    first = of_role(record, "first")
    limited = first[0]["at"]
    early = [entry["at"] for entry in first[1:] if entry["at"] < limited + 4 - 0.05]
    must(not early, f"asked again {len(early)} times within its 4 s, the first time {round(early[0] - limited, 1) if early else 0} s after the 429")
    return f"all {len(record['calls'])} answered; the limited account was left alone"


def persistent_429(record):
    all_whole(record)
    asked = len(of_role(record, "first"))
    must(asked <= 3, f"the limited account was asked {asked} times in ten turns")
    return f"all answered; the limited account was asked {asked} times"


def all_429(record):
    for n, call in enumerate(record["calls"], 1):
        must(call["status"] == 429, f"turn {n}: {said(call)}")
        must(seconds(call) <= BOUND, f"turn {n} took {seconds(call)} s")
    again = {entry["account"] for entry in record["meter"]}
    counts = {account: sum(entry["account"] == account for entry in record["meter"]) for account in sorted(again)}
    worst = max(counts.values())
    must(worst == 1, f"within their 30 s accounts were asked again: {counts}")
    missing = [n for n, call in enumerate(record["calls"], 1) if not call["retry_after"]]
    must(not missing, f"turn {missing[0] if missing else 0} has no Retry-After")
    return f"429 with Retry-After {record['calls'][-1]['retry_after']}; each account was asked once"


def recovered(record, count):
    all_whole(record)
    requests(record, count)
    return f"answered whole in {seconds(record['calls'][0])} s by {count} request{'s' if count > 1 else ''}"


def persistent_503(record):
    all_whole(record)
    asked = len(of_role(record, "first"))
    must(asked <= 5, f"the failing account was asked {asked} times in ten turns")
    return f"all answered; the failing account was asked {asked} times"


def all_503(record):
    call = record["calls"][0]
    must((call["status"] or 0) >= 500 or (call["error"] and call["status"] == 200), said(call))
    must(call["finish"] is None, f"a finish beside the error: {said(call)}")
    must(seconds(call) <= BOUND, f"took {seconds(call)} s")
    must(len(record["meter"]) <= 10, f"{len(record['meter'])} requests for one turn")
    return f"{call['status']} in {seconds(call)} s after {len(record['meter'])} requests"


def silent_account(record):
    all_whole(record)
    took = seconds(record["calls"][0])
    must(took <= BOUND, f"took {took} s")
    return f"answered whole in {took} s"


def silent_everywhere(record):
    call = record["calls"][0]
    must(told(call) and call["end"] != "our clock", f"not told: {said(call)}")
    must(seconds(call) <= BOUND, f"took {seconds(call)} s, {len(record['meter'])} requests")
    must(not record["open"], f"{len(record['open'])} requests stay open behind it")
    return f"{said(call)}; {len(record['meter'])} requests"


def broken_stream(record):
    return honest(record["calls"][0], record)


def stall(record):
    call = record["calls"][0]
    must(call["end"] != "our clock", f"still waiting after {seconds(call)} s")
    seen = honest(call, record)
    must(seconds(call) <= scenarios.PATIENCE_SECONDS + scenarios.SLACK_SECONDS, f"took {seconds(call)} s: {said(call)}")
    must(not record["open"], "the silent request stays open")
    return seen


def malformed_first(record):
    all_whole(record)
    return f"answered whole by {len(record['meter'])} requests"


def context_too_long(record):
    long, ordinary = record["calls"]
    if whole(long, record["meter"]) is None:
        by = next(entry["role"] for entry in record["meter"] if entry["n"] == long["runs"][0][0])
        must(by in ("larger", "fallback"), f"answered by {by}, which had refused it")
        seen = f"answered by the {by} model"
    else:
        must(long["status"] in (400, 413), f"not told as what it is: {said(long)}")
        seen = f"told: {long['status']}"
    promptly(ordinary, record)
    return f"{seen} after {record['healed']} requests; the ordinary turn was answered"


def promptly(call, record):
    why = whole(call, record["meter"])
    must(why is None, f"the ordinary turn after it: {why}")
    must(seconds(call) <= LEFT_SECONDS, f"the ordinary turn after it took {seconds(call)} s")


def content_filter(record):
    refused, ordinary = record["calls"]
    must(400 <= (refused["status"] or 0) < 500 or refused["finish"] == "filter", f"not told as what it is: {said(refused)}")
    asked = {entry["account"] for entry in record["meter"][: record["healed"]]}
    must(len(asked) == 1, f"{len(asked)} accounts were asked the same")
    promptly(ordinary, record)
    return f"told: {refused['status']}{', finish filter' if refused['finish'] else ''}; one account was asked"


def filtered_answer(record):
    call = record["calls"][0]
    must(call["status"] == 200 and call["finish"] == "filter", f"the reason was lost: {said(call)}")
    must(len(call["runs"]) == 1 and call["runs"][0][1:] == [1, 20], f"words were lost: {said(call)}")
    requests(record, 1)
    return "the words and the reason arrived"


def fallback_rejects(record):
    call = record["calls"][0]
    must(told(call) and call["finish"] is None and call["end"] != "our clock", said(call))
    must(seconds(call) <= BOUND, f"took {seconds(call)} s, {len(record['meter'])} requests")
    asked = len(of_role(record, "fallback"))
    must(asked <= 1, f"the fallback was asked {asked} times")
    return f"status {call['status']} in {seconds(call)} s; the fallback was asked {'once' if asked else 'not at all'}"


def flapping(record):
    all_whole(record)
    return f"all 12 answered by {len(record['meter'])} requests"


def accounting(record):
    all_whole(record)
    for n, call in enumerate(record["calls"], 1):
        billed = next(entry["billed"] for entry in record["meter"] if entry["n"] == call["runs"][0][0])
        must(call["usage"] == billed, f"turn {n}: told {call['usage']}, billed {billed}")
    return f"usage as billed ({record['calls'][0]['usage']}) after {len(record['meter'])} requests"


def leave_sending(record):
    requests(record, 0)
    return "no upstream was asked"


def ended_soon(record):
    """Every request that was asked for a caller who left has ended within its seconds."""
    for call in (call for call in record["calls"] if call["end"] == "left"):
        for entry in record["meter"]:
            if entry["at"] <= call["ended"] and not entry["completed"]:
                ended = entry["ended"]
                must(ended is not None, "the upstream's request was still open when the scenario ended")
                must(ended - call["ended"] <= LEFT_SECONDS, f"the upstream's request ended {round(ended - call['ended'], 1)} s after the caller had left")


def leave(record):
    left = [call for call in record["calls"] if call["end"] == "left"]
    must(len(left) == len(record["calls"]), f"the caller could not leave: {said(record['calls'][0])}")
    ended_soon(record)
    must(len(record["meter"]) <= len(left), f"{len(record['meter'])} requests for {len(left)} turns")
    must(record["meter"], "no upstream was asked")
    latest = max(entry["ended"] - call["ended"] for entry, call in zip(record["meter"], left))
    return f"the upstream's request ended {max(0, round(latest, 1))} s after the caller had left"


def reset_in_final_write(record):
    """The calls are pairs: one that leaves, and the same request again."""
    pairs = list(zip(record["calls"][::2], record["calls"][1::2]))
    for left, again in pairs:
        must(left["end"] == "left", f"the caller could not leave: {said(left)}")
        why = whole(again, record["meter"])
        must(why is None, f"asked again: {why}")
    paid = sum(entry["completed"] for entry in record["meter"])
    must(paid == len(pairs), f"{len(pairs)} answer{'s were' if len(pairs) > 1 else ' was'} paid for {paid} times")
    return f"asked again, {'each' if len(pairs) > 1 else 'it'} came whole; {paid} paid for"


def slow_reader(record):
    all_whole(record)
    grown = round(record["memory"]["peak"] - record["memory"]["before"], 1)
    must(grown <= scenarios.MEMORY_MIB, f"arrived whole, but memory grew by {grown} MiB")
    return f"arrived whole; memory grew by {grown} MiB"


def duplicate_key(record):
    all_whole(record)
    requests(record, 1)
    return "three answers of one request"


def refused(record):
    call = record["calls"][0]
    must(400 <= (call["status"] or 0) < 500, said(call))
    requests(record, 0)
    return f"{call['status']}; no upstream was asked"


def short_deadline(record):
    *left, patient = record["calls"]
    must(all(call["end"] == "left" for call in left), f"the caller could not leave: {said(left[0])}")
    ended_soon(record)
    billed = sum(entry["completed"] for entry in record["meter"][: record["healed"]])
    must(billed == 0, f"{billed} of the requests that were given up went on to be answered and billed")
    promptly(patient, record)
    return f"all ended, none billed; the patient caller was answered in {seconds(patient)} s"


def giant_headers(record):
    call = record["calls"][0]
    refused_it = 400 <= (call["status"] or 0) < 500 or (call["status"] is None and call["end"] in ("reset", "complete", "cut"))
    must(refused_it, said(call))
    must(seconds(call) <= 10, f"took {seconds(call)} s")
    requests(record, 0)
    grown = round(record["memory"]["peak"] - record["memory"]["before"], 1)
    must(grown <= scenarios.MEMORY_MIB, f"memory grew by {grown} MiB")
    return f"{call['status'] or 'closed'} in {seconds(call)} s; memory grew by {grown} MiB"


RULES = {
    "retry-after": retry_after,
    "persistent-429": persistent_429,
    "all-429": all_429,
    "one-500": lambda record: recovered(record, 2),
    "persistent-503": persistent_503,
    "all-503": all_503,
    "reset-before-headers": lambda record: recovered(record, 2),
    "silent-account": silent_account,
    "silent-everywhere": silent_everywhere,
    "slow-first-token": lambda record: recovered(record, 1),
    "stream-cut": broken_stream,
    "stream-reset": broken_stream,
    "stall-mid-stream": stall,
    "malformed-first": malformed_first,
    "malformed-mid-stream": broken_stream,
    "missing-terminal": broken_stream,
    "context-too-long": context_too_long,
    "content-filter": content_filter,
    "filtered-answer": filtered_answer,
    "fallback-rejects": fallback_rejects,
    "flapping": flapping,
    "accounting-after-failover": accounting,
    "leave-sending": leave_sending,
    "leave-waiting": leave,
    "leave-streaming": leave,
    "reset-while-streaming": leave,
    "reset-in-final-write": reset_in_final_write,
    "reset-and-ask-at-once": reset_in_final_write,
    "slow-reader": slow_reader,
    "duplicate-key": duplicate_key,
    "malformed-utf8": refused,
    "short-deadline": short_deadline,
    "giant-headers": giant_headers,
}


def judge(scenario_id, record):
    """(verdict, one sentence of what was seen)."""
    if record.get("not_applicable"):
        return NOT_APPLICABLE, record["not_applicable"]
    if record.get("overrun"):
        return FAIL, f"not at its end after {scenarios.SCENARIO_SECONDS} s"
    if record.get("trouble"):
        return FAIL, record["trouble"]
    try:
        return PASS, RULES[scenario_id](record)
    except Broken as broken:
        return FAIL, str(broken)


def judge_after(scenario_id, record):
    """What is looked at after every scenario, each as (verdict, what was seen): standing, slots, memory, ledger.

    Standing and slots are the caller's and the upstream's view; what a gateway publishes of its own is compared with them where it
    publishes it, and is "n/a" where it does not.
    """
    out = {}
    if record.get("not_applicable") or record.get("overrun") or record.get("trouble"):
        return out
    probe = record["probe"]
    if probe is None:
        out["standing"] = out["slots"] = (NOT_APPLICABLE, "no gateway")
    else:
        why = whole(probe, record["probe_meter"])
        late = seconds(probe) > LEFT_SECONDS
        bad = why or (f"took {seconds(probe)} s" if late else None)
        out["standing"] = (FAIL, f"the next turn: {bad}") if bad else (PASS, f"the next turn was answered in {seconds(probe)} s")
        if scenarios.BY_ID[scenario_id].standing:
            out["standing"] = (NOT_APPLICABLE, scenarios.BY_ID[scenario_id].standing)
        published = record["published"].get("in_flight")
        open_count = len(record["open"])
        seen = f"{open_count} requests open at the upstream" + ("" if published is None else f", {published} slots held")
        out["slots"] = (PASS if open_count == 0 and not published else FAIL, seen)
    memory = record["memory"]
    if memory:
        grown = round(memory["after"] - memory["before"], 1)
        out["memory"] = (PASS if grown <= scenarios.MEMORY_MIB else FAIL, f"{memory['before']:.0f} MiB, {grown:+.1f} MiB")
    else:
        out["memory"] = (NOT_APPLICABLE, "no process of its own")
    ledger = record["published"].get("ledger") if record.get("published") else None
    if ledger is None:
        out["ledger"] = (NOT_APPLICABLE, "publishes none here")
    else:
        meter = record["whole_meter"]
        asked, billed = len(meter), [sum(entry["billed"][side] for entry in meter if entry["billed"]) for side in (0, 1)]
        exact = [ledger["exact_input"], ledger["exact_output"]]
        good = ledger["attempts"] == asked and exact == billed
        out["ledger"] = (PASS if good else FAIL, f"ledger {ledger['attempts']} attempts, {exact} tokens exact; meter {asked} requests, {billed} billed")
    return out
