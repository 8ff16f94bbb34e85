"""Turns recorded client requests into fixtures.

usage: sanitise_captures.py RECORDINGS FIXTURES

RECORDINGS holds <client>/<case>.jsonl, one request a line: {"seq", "method", "target", "headers": [[name, value]…],
"body"}; a value {"$same_as": [seq, key…]} stands for that part of an earlier request's body. FIXTURES gets
<client>/<case>-<n>.json with method, target, headers and body, for the paths this gateway serves.

Left out of headers: credentials and cookies (the replaying test brings its own), and what belongs to one connection or
one length (host, content-length, connection, transfer-encoding). A request whose target and body were already taken for
that client is left out; recordings of faults come last, so that the plain case gives its name.
"""

import json
import pathlib
import re
import sys

PATHS = {
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/responses"),
    ("POST", "/v1/messages"),
    ("POST", "/v1/messages/count_tokens"),
    ("GET", "/v1/models"),
    ("GET", "/v1beta/models"),
    ("HEAD", "/api/hello"),
}
GEMINI = re.compile(r"/v1(?:beta)?/models/[^/]+:(?:generateContent|streamGenerateContent|countTokens)")
RUNS = {"client_metadata", "prompt_cache_key", "metadata"}
LEFT_OUT = {
    "authorization", "x-api-key", "x-goog-api-key", "proxy-authorization", "cookie",
    "host", "content-length", "connection", "transfer-encoding", "accept-encoding",
}


def requests_of(path):
    bodies = {}

    def filled(value):
        if isinstance(value, dict):
            if list(value) == ["$same_as"]:
                seq, *keys = value["$same_as"]
                found = bodies[seq]
                for key in keys:
                    found = found[key]
                return found
            return {key: filled(part) for key, part in value.items()}
        if isinstance(value, list):
            return [filled(part) for part in value]
        return value

    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if "method" not in record:
            continue
        record["body"] = filled(record["body"])
        bodies[record["seq"]] = {"body": record["body"], **record}
        yield record


def main(recordings, fixtures):
    written = size = 0
    for client in sorted(path for path in recordings.iterdir() if path.is_dir()):
        taken = set()
        cases = sorted(client.glob("*.jsonl"), key=lambda path: (path.stem.startswith("f_"), path.stem))
        for case in cases:
            number = 0
            for record in requests_of(case):
                path = record["target"].split("?")[0]
                if (record["method"], path) not in PATHS and not (record["method"] == "POST" and GEMINI.fullmatch(path)):
                    continue
                body = record["body"]
                # What is only about the run, not about the turn.
                turn = {key: body[key] for key in body.keys() - RUNS} if isinstance(body, dict) else body
                identity = json.dumps([record["method"], record["target"], turn], sort_keys=True)
                if identity in taken:
                    continue
                taken.add(identity)
                number += 1
                kept = {
                    "method": record["method"],
                    "target": record["target"],
                    "headers": [pair for pair in record["headers"] if pair[0].lower() not in LEFT_OUT],
                    "body": record["body"],
                }
                text = json.dumps(kept, ensure_ascii=False, separators=(",", ":")) + "\n"
                target = fixtures / client.name / f"{case.stem}-{number}.json"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
                written += 1
                size += len(text.encode())
    print(f"{written} fixtures, {size} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
