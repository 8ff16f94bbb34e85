"""Reads server-sent events from a response as they come. Knows the framing, not the dialects."""

import json


def events(stream):
    """Yields (event name or None, data) for each event of a readable byte stream; comments are skipped."""
    name, data = None, []
    for raw in stream:
        line = raw.decode("utf-8").rstrip("\r\n")
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = None, []
        elif line.startswith(":"):
            continue
        else:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)


def chat(stream):
    """The chunks of a Chat stream; the end mark must come, and last."""
    chunks, ended = [], False
    for _, data in events(stream):
        assert not ended, f"data after [DONE]: {data}"
        if data == "[DONE]":
            ended = True
        else:
            chunks.append(json.loads(data))
    assert ended, f"the stream ended without [DONE] after {chunks[-2:]}"
    return chunks


def messages(stream):
    """The events of a Messages stream without pings; names agree with types, and message_stop comes last."""
    found = []
    for name, data in events(stream):
        event = json.loads(data)
        assert event["type"] == name, (name, event)
        if name != "ping":
            found.append(event)
    assert found and found[-1]["type"] == "message_stop", f"the stream ended without message_stop after {found[-2:]}"
    return found
