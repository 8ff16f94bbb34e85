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


def responses(stream):
    """The events of a Responses stream: names agree with types, numbers are dense, and nothing comes after the end."""
    found = []
    for name, data in events(stream):
        event = json.loads(data)
        assert event["type"] == name and event["sequence_number"] == len(found), (name, event)
        found.append(event)
    ends = [event["type"] for event in found if event["type"] in ("response.completed", "response.incomplete", "response.failed")]
    assert len(ends) == 1 and found[-1]["type"] == ends[0], f"the stream ended without its end after {found[-2:]}"
    return found


def gemini(stream):
    """The chunks of a Gemini stream."""
    return [json.loads(data) for _, data in events(stream)]
