"""The caller: one request on a raw socket, so that it can leave, reset, read slowly or write what no library would.

What it records is all that the checker knows of this side: bytes, times, and how the connection ended.
"""

import asyncio
import json
import re
import socket
import time

import dialects
import http1

# The most that one call may take by our own clock.
CALL_SECONDS = 60
WORD_BYTES = re.compile(rb"w\d+\.\d+")


def body_of(dialect, call, text):
    body = json.dumps(dialects.request(dialect, text, call.get("stream", False))).encode()
    if call.get("body") == "bad utf-8":
        # A byte that is nowhere in UTF-8, inside the user's own text.
        body = body.replace(text.encode(), text.encode() + b"\xff\xfe")
    return body


def record(dialect, call, raw, times, end):
    """The call as data. The answer's bytes themselves are kept at their two ends only."""
    answer = http1.read_response(raw)
    found = dialects.read(dialect, answer["headers"].get("content-type", ""), answer["body"])
    if answer["status"] is not None and answer["status"] >= 400 and not found["error"]:
        found["error"] = answer["body"][:400].decode("utf-8", errors="replace")
    if end == "closed":
        end = "cut" if answer["whole"] is False else "complete"
    pairs = [tuple(map(int, pair)) for pair in dialects.WORD.findall(found["text"])]
    runs = []
    for attempt, number in pairs:
        if runs and runs[-1][0] == attempt and runs[-1][2] + 1 == number:
            runs[-1][2] = number
        else:
            runs.append([attempt, number, number])
    return {
        **times,
        "status": answer["status"],
        "retry_after": answer["headers"].get("retry-after"),
        "end": end,
        # The words that came, as runs of (attempt, from, to): one run from 1 is an answer of one piece.
        "runs": runs[:20],
        "finish": found["finish"],
        "done": found["done"],
        "error": found["error"],
        "usage": found["usage"],
        "not_json": found.get("not_json", 0),
        "bytes": len(raw),
        "tail": raw[-160:].decode("utf-8", errors="replace"),
    }


async def ask(port, dialect, key, call, text, extra, began):
    """Makes the call and gives its record."""
    now = lambda: round(time.monotonic() - began, 3)  # noqa: E731
    times = {"sent": now(), "first_byte": None, "ended": None}
    leave, raw = call.get("leave") or {}, bytearray()
    held = {}
    try:
        end = await asyncio.wait_for(converse(held, port, dialect, key, call, text, extra, raw, times, now), CALL_SECONDS)
    except asyncio.TimeoutError:
        end = "our clock"
    except http1.Gone:
        # It may have answered before it stopped reading: what is there counts.
        while held["wire"].buffer or await held["wire"].fill():
            raw += held["wire"].buffer
            held["wire"].buffer = b""
        end = "reset"
    except OSError as failure:
        end = f"no connection: {type(failure).__name__}"
    wire = held.get("wire")
    if wire is not None:
        if end == "left" and leave.get("how") == "reset":
            wire.reset()
        else:
            wire.close()
    times["ended"] = now()
    # A long answer takes a while to read: the other scenarios' clocks go on meanwhile.
    return await asyncio.to_thread(record, dialect, call, bytes(raw), times, end)


async def converse(held, port, dialect, key, call, text, extra, raw, times, now):
    """Connects, sends, and reads or leaves; how it ended."""
    raw_socket = socket.socket()
    raw_socket.setblocking(False)
    if call.get("small_window"):
        # So that most of a large write is still on its way when the caller has seen its beginning.
        raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 * 1024)
    try:
        await asyncio.get_running_loop().sock_connect(raw_socket, ("127.0.0.1", port))
    except BaseException:
        raw_socket.close()
        raise
    reader, writer = await asyncio.open_connection(sock=raw_socket, limit=4096 if call.get("small_window") else 65536)
    wire = held["wire"] = http1.Wire(reader, writer)
    leave = call.get("leave") or {}
    body = body_of(dialect, call, text)
    lines = [
        f"POST {dialects.target(dialect, call.get('stream', False))} HTTP/1.1",
        f"host: 127.0.0.1:{port}",
        "content-type: application/json",
        *(f"{name}: {value}" for name, value in dialects.credentials(dialect, key) + list(extra)),
    ]
    if "key" in call:
        lines.append(f"idempotency-key: {call['key']}")
    if "header_bytes" in call:
        lines.append("x-giant: " + "g" * call["header_bytes"])
    head = "\r\n".join([*lines, f"content-length: {len(body)}", "connection: close", "", ""]).encode()
    if leave.get("when") == "sending":
        await wire.send(head + body[: len(body) // 2])
        await http1.pause(leave["after"])
        return "left"
    await wire.send(head + body)
    return await receive(wire, call, leave, raw, times, now)


async def receive(wire, call, leave, raw, times, now):
    """Reads until the answer ends or the caller leaves; how it ended."""
    rest = call.get("pause_reading")
    deadline = leave["after"] if leave.get("when") == "waiting" else None
    while True:
        try:
            more = await asyncio.wait_for(wire.fill(), deadline)
        except asyncio.TimeoutError:
            return "left"
        if not more:
            return "closed" if wire.ended == "closed" else "reset"
        if times["first_byte"] is None:
            times["first_byte"] = now()
        raw += wire.buffer
        wire.buffer = b""
        if rest and len(raw) > rest["after_bytes"]:
            await http1.pause(rest["seconds"])
            rest = None
        if leave.get("when") == "words" and len(WORD_BYTES.findall(raw)) >= leave["after"]:
            await http1.pause(leave.get("linger", 0))
            return "left"
