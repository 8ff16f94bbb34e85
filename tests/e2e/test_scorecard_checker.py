"""The scorecard's one checker: each scenario's rule passes on a record of what should happen and fails on one of what should not.

No gateway, no peer and no socket: records are written here as the caller and the upstream would have made them.
"""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "scorecard"))

import checker  # noqa: E402
import dialects  # noqa: E402
import scenarios  # noqa: E402

FIRST, OTHER, FALLBACK, LARGER = ({"role": role, "account": role} for role in ("first", "other", "fallback", "larger"))
DIALECTS = ("chat", "responses", "messages", "gemini")


def call(attempt=1, words=20, **more):
    """A call that was answered whole by `attempt`."""
    told = {"sent": 0.0, "first_byte": 0.1, "ended": 1.0, "status": 200, "retry_after": None, "end": "complete"}
    found = {"finish": "stop", "done": True, "error": None, "usage": [11, words], "not_json": 0, "bytes": 1000, "tail": ""}
    return {**told, **found, "runs": [[attempt, 1, words]], **more}


def failed(status, **more):
    return call(**{"status": status, "runs": [], "finish": None, "done": False, "error": "{}", "usage": None, **more})


def partly(**more):
    """Five words of a stream that broke."""
    return call(**{"runs": [[1, 1, 5]], "finish": None, "done": False, "usage": None, **more})


def left(ended=2.0, **more):
    return partly(**{"end": "left", "ended": ended, **more})


def asked(n=1, role=FIRST, at=0.0, words=20, **more):
    """A request that the upstream answered whole."""
    entry = {"n": n, "at": at, "stream": True, "did": "answer", "words": words, "completed": True, "billed": [11, words], "ended": 1.0, "by": "us"}
    return {**entry, **role, **more}


def refused(n=1, role=FIRST, at=0.0, **more):
    return asked(n, role, at, **{"did": "error", "words": 0, "completed": False, "billed": None, **more})


def record(calls, meter, **more):
    return {"calls": calls, "meter": meter, "open": [], "memory": {"before": 10.0, "peak": 12.0, "after": 11.0}, "healed": len(meter), **more}


def turns(count, again=0, **role):
    """So many turns, each answered by a request of its own; the account asked first refused `again` more."""
    return record([call(n) for n in range(1, count + 1)], [asked(n, OTHER) for n in range(1, count + 1)] + [refused(100 + n) for n in range(again)])


WHOLE = record([call(2)], [refused(1), asked(2, OTHER)])
HALF_SUCCESS = record([partly(finish="stop", done=True)], [refused(1, words=5)])
TOLD_HALF = record([partly(error="{}")], [refused(1, words=5)])
STUCK = record([partly(end="our clock", ended=60.0)], [refused(1, words=5, ended=None)])
GONE_SOON = [refused(1, ended=2.5, by="peer")]
GONE_LATE = [refused(1, ended=9.0, by="peer")]
SILENT = [refused(n, role, ended=12.0, by="peer") for n, role in ((1, FIRST), (2, OTHER))]
LIMITED = [refused(n, role) for n, role in ((1, FIRST), (2, OTHER), (3, FALLBACK))]
HELD = [asked(1, words=10)]

# Of each scenario: a record that must pass, and the records that must not.
RECORDS = {
    "retry-after": (
        record([call(2), call(3)], [refused(1, at=0.0), asked(2, OTHER), asked(3, FIRST, at=4.2)]),
        [record([call(2), call(3)], [refused(1, at=0.0), asked(2, OTHER), asked(3, FIRST, at=1.0)]), record([failed(429)], [refused(1)])],
    ),
    "persistent-429": (turns(10, again=3), [turns(10, again=4), record([failed(429)], [refused(1)])]),
    "all-429": (
        record([failed(429, retry_after="30")] * 3, LIMITED),
        [
            record([failed(429, retry_after="30")] * 3, [*LIMITED, refused(4, FIRST)]),
            record([failed(429)] * 3, LIMITED),
            record([failed(502, retry_after="30")] * 3, LIMITED),
            record([failed(429, retry_after="30", ended=40.0)] * 3, LIMITED),
        ],
    ),
    "one-500": (WHOLE, [record([failed(500)], [refused(1)]), record([call(3)], [refused(1), refused(2), asked(3)])]),
    "persistent-503": (turns(10, again=5), [turns(10, again=6)]),
    "all-503": (
        record([failed(503)], LIMITED),
        [record([failed(503, ended=30.0)], LIMITED), record([failed(503)], [refused(n) for n in range(11)]), record([call()], [])],
    ),
    "reset-before-headers": (WHOLE, [record([partly(end="reset")], [refused(1)])]),
    "silent-account": (WHOLE, [record([call(2, ended=30.0)], [refused(1), asked(2)]), STUCK]),
    "silent-everywhere": (
        record([failed(504, ended=12.0)], SILENT),
        [record([failed(504, ended=32.0)], SILENT), record([failed(504, ended=12.0)], SILENT, open=[2]), record([partly(end="our clock")], SILENT)],
    ),
    "slow-first-token": (record([call(1)], [asked(1)]), [record([call(2)], [refused(1), asked(2)])]),
    "stream-cut": (TOLD_HALF, [HALF_SUCCESS]),
    "stream-reset": (record([partly(end="reset")], [refused(1, words=5)]), [HALF_SUCCESS]),
    "stall-mid-stream": (TOLD_HALF, [STUCK, HALF_SUCCESS, record([partly(error="{}", ended=20.0)], []), record([partly(error="{}")], [], open=[1])]),
    "malformed-first": (WHOLE, [record([failed(502)], [refused(1)])]),
    "malformed-mid-stream": (record([partly(not_json=1)], [refused(1, words=5)]), [HALF_SUCCESS]),
    "missing-terminal": (
        record([partly()], [refused(1, words=5)]),
        [
            HALF_SUCCESS,
            record([partly(done=True)], [refused(1, words=5)]),
            record([call(runs=[[1, 1, 5], [2, 1, 20]])], [refused(1, words=5), asked(2)]),
        ],
    ),
    "context-too-long": (
        record([call(2), call(3)], [refused(1), asked(2, LARGER), asked(3)]),
        [
            record([failed(502), call(2)], [refused(1), asked(2)]),
            record([failed(400), failed(503)], [refused(1)]),
            record([call(2), call(3)], [refused(1), asked(2, OTHER), asked(3)]),
        ],
    ),
    "content-filter": (
        record([failed(451), call(2)], [refused(1), asked(2)], healed=1),
        [
            record([failed(451), call(3)], [refused(1), refused(2, OTHER), asked(3)], healed=2),
            record([failed(502), call(2)], [refused(1), asked(2)], healed=1),
            record([failed(451), call(2, ended=9.0)], [refused(1), asked(2)], healed=1),
        ],
    ),
    "filtered-answer": (record([call(1, finish="filter")], [asked(1)]), [record([call(1)], [asked(1)]), record([call(1, words=9, finish="filter")], [asked(1)])]),
    "fallback-rejects": (
        record([failed(400)], LIMITED),
        [record([failed(400)], [*LIMITED, refused(4, FALLBACK)]), record([failed(400, ended=30.0)], LIMITED), record([call()], LIMITED)],
    ),
    "flapping": (turns(12, again=12), [record([failed(503)], [refused(1)])]),
    "accounting-after-failover": (
        record([call(2), call(4)], [refused(1), asked(2), refused(3), asked(4)]),
        [record([call(2, usage=[22, 20])], [refused(1), asked(2)]), record([call(2, usage=None)], [refused(1), asked(2)])],
    ),
    "leave-sending": (record([left()], []), [record([left()], [asked(1)])]),
    "leave-waiting": (
        record([left()], GONE_SOON),
        [record([left()], GONE_LATE), record([left()], [refused(1, ended=None)]), record([left()], GONE_SOON * 2), record([left()], []), record([call()], HELD)],
    ),
    "leave-streaming": (record([left()], GONE_SOON), [record([left()], GONE_LATE)]),
    "reset-while-streaming": (record([left()], GONE_SOON), [record([left()], GONE_LATE)]),
    "reset-in-final-write": (
        record([left(), call(1, words=10)], HELD),
        [record([left(), call(2, words=10)], [*HELD, asked(2, words=10)]), record([left(), failed(503)], HELD), record([call(), call()], HELD)],
    ),
    "reset-and-ask-at-once": (
        record([left(), call(1, words=10), left(), call(2, words=10)], [*HELD, asked(2, words=10)]),
        [record([left(), call(2, words=10), left(), call(3, words=10)], [*HELD, asked(2, words=10), asked(3, words=10)])],
    ),
    "slow-reader": (
        record([call(1)], [asked(1)]),
        [record([partly(end="cut")], [asked(1)]), record([call(1)], [asked(1)], memory={"before": 10.0, "peak": 50.0, "after": 10.0})],
    ),
    "duplicate-key": (record([call(1)] * 3, [asked(1)]), [record([call(1), call(2), call(1)], [asked(1), asked(2)]), record([call(1), failed(409)], [asked(1)])]),
    "malformed-utf8": (record([failed(400)], []), [record([call(1)], [asked(1)]), record([failed(500)], []), record([failed(400)], [refused(1)])]),
    "short-deadline": (
        record([left(), call(2)], [refused(1, ended=2.1, by="peer"), asked(2)], healed=1),
        [
            record([left(), failed(503)], GONE_SOON, healed=1),
            record([left(), call(2)], [*GONE_LATE, asked(2)], healed=1),
            record([left(), call(2, ended=9.0)], [*GONE_SOON, asked(2)], healed=1),
            record([left(), call(2)], [asked(1), asked(2)], healed=1),
        ],
    ),
    "giant-headers": (
        record([failed(431)], []),
        [record([call(1)], [asked(1)]), record([failed(431)], [], memory={"before": 10.0, "peak": 50.0, "after": 10.0}), record([failed(431, ended=12.0)], [])],
    ),
}


def test_every_scenario_has_a_rule_a_good_record_and_a_bad_one():
    ids = [scenario.id for scenario in scenarios.ALL]
    assert len(set(ids)) == len(ids)
    assert set(ids) == set(checker.RULES) == set(RECORDS)
    assert all(bad for _, bad in RECORDS.values())


@pytest.mark.parametrize("name", RECORDS)
def test_a_rule_passes_what_should_happen(name):
    verdict, seen = checker.judge(name, RECORDS[name][0])
    assert verdict == checker.PASS, seen


@pytest.mark.parametrize("name, number", [(name, number) for name, (_, bad) in RECORDS.items() for number in range(len(bad))])
def test_a_rule_fails_what_should_not(name, number):
    verdict, seen = checker.judge(name, RECORDS[name][1][number])
    assert verdict == checker.FAIL and seen


def test_what_could_not_be_run_or_did_not_end_is_nobodys_pass():
    assert checker.judge("one-500", {"trouble": "could not be run"})[0] == checker.FAIL
    assert checker.judge("one-500", {"overrun": True})[0] == checker.FAIL
    assert checker.judge("one-500", {"not_applicable": "no gateway"})[0] == checker.NOT_APPLICABLE


def after(**more):
    """What is looked at after a scenario whose two requests, the probe's included, were written down."""
    published = {"in_flight": 0, "ledger": {"attempts": 2, "exact_input": 22, "exact_output": 40}}
    meter = [asked(1), asked(2)]
    found = {**record([call(1)], meter), "probe": call(2), "probe_meter": [meter[1]], "whole_meter": meter, "published": published, **more}
    return {name: verdict for name, (verdict, _) in checker.judge_after("one-500", found).items()}


def test_standing_slots_memory_and_ledger_are_each_judged_after_a_scenario():
    assert set(after().values()) == {checker.PASS}
    assert after(probe=failed(503))["standing"] == checker.FAIL
    assert after(probe=call(2, ended=9.0))["standing"] == checker.FAIL
    assert after(open=[1])["slots"] == checker.FAIL
    assert after(published={"in_flight": 1})["slots"] == checker.FAIL
    assert after(memory={"before": 10.0, "peak": 50.0, "after": 50.0})["memory"] == checker.FAIL
    missed = {"in_flight": 0, "ledger": {"attempts": 1, "exact_input": 22, "exact_output": 40}}
    assert after(published=missed)["ledger"] == checker.FAIL
    assert after(published={})["ledger"] == checker.NOT_APPLICABLE


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_the_upstream_writes_of_a_dialect_the_caller_reads(dialect):
    answer = dialects.Answer(dialect, 7)
    body = answer.head() + b"".join(answer.delta() for _ in range(4))
    broken = dialects.read(dialect, "text/event-stream", body)
    assert dialects.WORD.findall(broken["text"]) == [("7", str(n)) for n in range(1, 5)]
    assert broken["finish"] is None and not broken["done"] and broken["error"] is None

    whole = dialects.read(dialect, "text/event-stream", body + answer.end())
    assert (whole["finish"], whole["done"], whole["usage"]) == ("stop", True, [dialects.PROMPT_TOKENS, 4])
    filtered = dialects.Answer(dialect, 8).plain(3, "filter")
    read = dialects.read(dialect, "application/json", dialects.dumps(filtered).encode())
    assert (read["finish"], len(dialects.WORD.findall(read["text"]))) == ("filter", 3)
    refusal = dialects.read(dialect, "application/json", dialects.dumps(dialects.error(dialect, 429, "rate")).encode())
    assert refusal["error"] and refusal["finish"] is None
