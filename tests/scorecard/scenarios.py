"""The published scenarios: what the upstream and the caller do, and what must hold, each in one place and as data.

The same list is run against every gateway; docs/scorecard.md prints it. Rules say what any caller or operator would want and name no
product's own means; `checker.py` has a function for each.

A script says per role (see `upstream.py`) what the requests of that role meet, in order; the last goes on for ever. A call is made
when the one before it has ended, or at its own second (`at`). Calls with the same `same` send the same request.
"""

from dataclasses import dataclass

# What every gateway is configured with, where it has a setting for it (the files in gateways/ say which): how long an attempt may
# take to its first token and between two, and how long the call as a whole may take until its answer begins.
PATIENCE_SECONDS = 8
DEADLINE_SECONDS = 12
# What a busy machine may add before a bound counts as missed.
SLACK_SECONDS = 6
SCENARIO_SECONDS = 90
# Growth of resident memory that is not counted against a gateway.
MEMORY_MIB = 32

OK = {"do": "answer"}
STREAM = {"stream": True}
PLAIN = {"stream": False}
BIG_PADDING = 16 * 1024
BIG_WORDS = 512


def error(status, kind, **more):
    return {"do": "error", "status": status, "kind": kind, **more}


def broken(then, after=5):
    return {"do": "answer", "then": then, "after": after}


CALLER_ITSELF = "the SDK is the caller itself"
LIMITED = error(429, "rate")
UNAVAILABLE = error(503, "unavailable")
FINAL_WRITE = {"any": [{"do": "answer", "words": 10, "tail": 192 * 1024, "pause": 0.02}]}
# Its window is small, so that most of a large write is still on its way when the caller has seen its beginning.
AT_FINAL_WRITE = {"when": "words", "after": 10, "how": "reset"}
RESET_AT_ONCE = {**STREAM, "same": 1, "small_window": True, "leave": AT_FINAL_WRITE}
# Two seconds later the gateway has had the whole answer and only waits to be rid of it, on a busy machine too.
RESET_INSIDE = {**RESET_AT_ONCE, "leave": {**AT_FINAL_WRITE, "linger": 2.0}}


@dataclass(frozen=True)
class Scenario:
    id: str
    side: str
    does: str
    holds: str
    script: dict
    calls: list
    # How long the upstream and the gateway get to come to rest after the last call.
    settle: float = 1.0
    # Why the bare SDK, which is no gateway, cannot be asked; nothing where it can.
    sdk: str = ""
    # Why the next turn tells nothing of standing; nothing where it does.
    standing: str = ""


ALL = [
    Scenario(
        "retry-after",
        "upstream",
        "The account asked first says 429 with `Retry-After: 4`, then would answer. Six callers ask, one a second.",
        "Every caller is answered, and that account is not asked again before its 4 seconds are over.",
        {"first": [error(429, "rate", retry_after=4), OK]},
        [{**(STREAM if n % 2 else PLAIN), "at": float(n)} for n in range(6)],
    ),
    Scenario(
        "persistent-429",
        "upstream",
        "The account asked first says 429 for ever, without `Retry-After`. Ten turns, one after the other.",
        "Every turn is answered, and the limited account is asked 3 times at most.",
        {"first": [LIMITED]},
        [STREAM if n % 2 else PLAIN for n in range(10)],
    ),
    Scenario(
        "all-429",
        "upstream",
        "Every account, the fallback's too, says 429 with `Retry-After: 30`. Three turns, one after the other.",
        "Each turn ends as a 429 with a `Retry-After` within 18 s, and no account is asked again within its 30 seconds.",
        {role: [error(429, "rate", retry_after=30)] for role in ("first", "other", "fallback", "larger")},
        [PLAIN, STREAM, PLAIN],
        standing="every account's 30 s still run",
    ),
    Scenario(
        "one-500",
        "upstream",
        "The first request of a turn gets a 500; the next one would be answered.",
        "The turn is answered whole, by two requests.",
        {"any": [error(500, "internal"), OK]},
        [STREAM],
    ),
    Scenario(
        "persistent-503",
        "upstream",
        "The account asked first says 503 for ever. Ten turns, one after the other.",
        "Every turn is answered, and the failing account is asked 5 times at most.",
        {"first": [UNAVAILABLE]},
        [STREAM if n % 2 else PLAIN for n in range(10)],
    ),
    Scenario(
        "all-503",
        "upstream",
        "Every account, the fallback's too, says 503.",
        "The turn ends as an error of 500 or above within 18 s, after 10 requests at most.",
        {role: [UNAVAILABLE] for role in ("first", "other", "fallback", "larger")},
        [STREAM],
    ),
    Scenario(
        "reset-before-headers",
        "upstream",
        "The connection is reset when the first request has been read; the next one would be answered.",
        "The turn is answered whole, by two requests.",
        {"any": [{"do": "reset"}, OK]},
        [STREAM],
    ),
    Scenario(
        "silent-account",
        "upstream",
        "The account asked first never answers; the others would.",
        "The turn is answered whole within 18 s.",
        {"first": [{"do": "silent"}]},
        [STREAM],
    ),
    Scenario(
        "silent-everywhere",
        "upstream",
        "No account ever answers, the fallback's neither. The deadline of the call is 12 s where a gateway has such a setting.",
        "One deadline bounds the turn: it ends as an error within 18 s, and no request stays open behind it.",
        {role: [{"do": "silent"}] for role in ("first", "other", "fallback", "larger")},
        [STREAM],
    ),
    Scenario(
        "slow-first-token",
        "upstream",
        "The first token comes after 6 s, which is within every gateway's patience.",
        "The turn is answered whole, by one request.",
        {"any": [{"do": "answer", "first": 6}]},
        [STREAM],
    ),
    Scenario(
        "stream-cut",
        "upstream",
        "A stream is cut after five words: the connection closes in the middle of the body.",
        "The caller can tell: an error or a broken connection, and no success; or it goes on to a true end, every word once.",
        {"any": [broken("cut"), OK]},
        [STREAM],
    ),
    Scenario(
        "stream-reset",
        "upstream",
        "A stream is reset after five words.",
        "The caller can tell: an error or a broken connection, and no success; or it goes on to a true end, every word once.",
        {"any": [broken("reset"), OK]},
        [STREAM],
    ),
    Scenario(
        "stall-mid-stream",
        "upstream",
        "A stream falls silent after five words, its connection open.",
        "The caller is told within 14 s (8 s of patience), without a success, and the silent request does not stay open.",
        {"any": [broken("stall"), OK]},
        [STREAM],
    ),
    Scenario(
        "malformed-first",
        "upstream",
        "The first event with content is not JSON; the next request would be answered.",
        "Nothing of it has been shown, so the turn is answered whole.",
        {"any": [broken("malformed", 0), OK]},
        [STREAM],
    ),
    Scenario(
        "malformed-mid-stream",
        "upstream",
        "After five words an event is not JSON, and the stream ends.",
        "The caller can tell: an error or a broken connection, and no success; or it goes on to a true end, every word once.",
        {"any": [broken("malformed"), OK]},
        [STREAM],
    ),
    Scenario(
        "missing-terminal",
        "upstream",
        "After five words the body ends in good order, without a finish and without the dialect's terminal.",
        "No success is made up: no finish reason and no terminal that the upstream never sent; or it goes on to a true end.",
        {"any": [broken("no terminal"), OK]},
        [STREAM],
    ),
    Scenario(
        "context-too-long",
        "upstream",
        "Both accounts refuse the request as too long for the model; a larger model would answer. Then an ordinary turn.",
        "The larger model answers, or the caller gets the 400; and the ordinary turn is answered at once.",
        {"first": [error(400, "context"), OK], "other": [error(400, "context"), OK]},
        [PLAIN, {**STREAM, "after_reset": True}],
    ),
    Scenario(
        "content-filter",
        "upstream",
        "The provider refuses the prompt for its content. Then an ordinary turn.",
        "The caller is told, no other account is asked the same, and the ordinary turn is answered at once.",
        {"any": [{"do": "blocked"}], "fallback": [{"do": "blocked"}], "larger": [{"do": "blocked"}]},
        [PLAIN, {**STREAM, "after_reset": True}],
    ),
    Scenario(
        "filtered-answer",
        "upstream",
        "An answer ends after 20 words because a filter stopped it.",
        "The caller gets the words and that reason, by one request.",
        {"any": [{"do": "answer", "finish": "filter"}]},
        [STREAM],
    ),
    Scenario(
        "fallback-rejects",
        "upstream",
        "Both accounts say 503, and the fallback refuses the request with a 400 of its own.",
        "The turn ends as an error within 18 s, and the fallback's 400 is not asked for again: one request to it.",
        {"first": [UNAVAILABLE], "other": [UNAVAILABLE], "fallback": [error(400, "parameter")]},
        [STREAM],
        sdk="it has no fallback",
    ),
    Scenario(
        "flapping",
        "upstream",
        "Every second request gets a 503. Twelve turns, one after the other.",
        "Every turn is answered whole.",
        {"any": [UNAVAILABLE, OK], "cycle": True},
        [STREAM if n % 2 else PLAIN for n in range(12)],
    ),
    Scenario(
        "accounting-after-failover",
        "upstream",
        "The first request of a stream gets a 500, the second breaks before its first word, whoever comes next answers; then a plain turn.",
        "What the caller is told of usage is what the upstream billed for the very request that answered it.",
        {"any": [error(500, "internal"), broken("cut", 0), OK]},
        [STREAM, PLAIN],
    ),
    Scenario(
        "leave-sending",
        "caller",
        "The caller leaves with half of its request sent.",
        "No upstream is asked, and the next turn is answered.",
        {},
        [{**STREAM, "leave": {"when": "sending", "after": 0.5}}],
        sdk=CALLER_ITSELF,
    ),
    Scenario(
        "leave-waiting",
        "caller",
        "The caller leaves while the upstream has not begun to answer, 2 s after it asked; once a stream, once a plain turn.",
        "The upstream's request is ended within 5 s, and nobody else is asked.",
        {"any": [{"do": "silent"}]},
        [{**STREAM, "leave": {"when": "waiting", "after": 2}}, {**PLAIN, "leave": {"when": "waiting", "after": 2}}],
        settle=5.0,
        sdk=CALLER_ITSELF,
    ),
    Scenario(
        "leave-streaming",
        "caller",
        "The caller closes after the fifth word of a stream that would go on for a minute.",
        "The upstream's request is ended within 5 s.",
        {"any": [{"do": "answer", "words": 600, "pause": 0.1}]},
        [{**STREAM, "leave": {"when": "words", "after": 5}}],
        settle=5.0,
    ),
    Scenario(
        "reset-while-streaming",
        "caller",
        "The caller resets its connection after the fifth word of such a stream.",
        "The upstream's request is ended within 5 s.",
        {"any": [{"do": "answer", "words": 600, "pause": 0.1}]},
        [{**STREAM, "leave": {"when": "words", "after": 5, "how": "reset"}}],
        settle=5.0,
        sdk=CALLER_ITSELF,
    ),
    Scenario(
        "reset-in-final-write",
        "caller",
        "The last word is 192 KiB and comes in one write with the terminal; the caller reads its beginning, stalls for 2 s, resets, and half a second later, as SDKs do, asks the same again.",
        "The same request is answered whole, and the answer that was paid for is not paid for again.",
        FINAL_WRITE,
        [RESET_INSIDE, {**STREAM, "same": 1, "wait": 0.5}],
        sdk=CALLER_ITSELF,
    ),
    Scenario(
        "reset-and-ask-at-once",
        "caller",
        "As before, but the caller resets and asks again in the very moment it sees the beginning of that write; six times, each another request.",
        "Each is answered whole, and no answer that was paid for is paid for again.",
        FINAL_WRITE,
        [{**call, "same": n} for n in range(1, 7) for call in (RESET_AT_ONCE, STREAM)],
        sdk=CALLER_ITSELF,
    ),
    Scenario(
        "slow-reader",
        "caller",
        "An answer of 8 MiB is streamed to a caller that stops reading for 10 s after its first 64 KiB.",
        "It arrives whole, and meanwhile the gateway's memory grows by 32 MiB at most.",
        {"any": [{"do": "answer", "words": BIG_WORDS, "size": BIG_PADDING, "pause": 0}]},
        [{**STREAM, "pause_reading": {"after_bytes": 65536, "seconds": 10}}],
        sdk=CALLER_ITSELF,
    ),
    Scenario(
        "duplicate-key",
        "caller",
        "The same request with the same `idempotency-key`: two at once, and one when both have ended.",
        "Every one is answered with the same words, and the upstream is asked once.",
        {"any": [{"do": "answer", "first": 1}]},
        [{**PLAIN, "same": 1, "key": "key-1", "at": 0.0}, {**PLAIN, "same": 1, "key": "key-1", "at": 0.3}, {**PLAIN, "same": 1, "key": "key-1", "at": 4.0}],
        sdk=CALLER_ITSELF,
    ),
    Scenario(
        "malformed-utf8",
        "caller",
        "A request whose text holds bytes that are not UTF-8.",
        "It is refused with a 4xx, and no upstream is asked.",
        {},
        [{**PLAIN, "body": "bad utf-8"}],
        sdk=CALLER_ITSELF,
    ),
    Scenario(
        "short-deadline",
        "caller",
        "The first token takes 6 s, and the caller gives up after 3 s, four times. Then a turn of a patient caller.",
        "No request that was given up goes on to be answered and billed, and the patient caller is answered: no account pays for callers' deadlines.",
        {"any": [{"do": "answer", "first": 6}]},
        [{**STREAM, "leave": {"when": "waiting", "after": 3}, "deadline": 3} for _ in range(4)] + [{**STREAM, "after_reset": True}],
    ),
    Scenario(
        "giant-headers",
        "caller",
        "A request with a header of 1 MiB.",
        "It is refused with a 4xx or a closed connection within 10 s, no upstream is asked, memory grows by 32 MiB at most.",
        {},
        [{**PLAIN, "header_bytes": 1024 * 1024}],
        sdk=CALLER_ITSELF,
    ),
]
BY_ID = {scenario.id: scenario for scenario in ALL}
