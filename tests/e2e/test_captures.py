"""What real clients sent, sent again: accepted as it is on the same-dialect and on the translated route, and answered.

The fixtures are recorded requests (see tools/sanitise_captures.py); only the model's name is replaced, by that of the route.
On a translated route whatever the target lacks must be named in `x-turnkeep-dropped`.
"""

import io
import json
import pathlib

import pytest

import sse
from processes import ROOT, Gateway, Lab, request
from sdk_scene import ROUTES as EVERY_ROUTE

FIXTURES = sorted((ROOT / "fixtures" / "captures").glob("*/*.json"))
ROUTES = {"/v1/chat/completions": ("via-chat", "via-messages"), "/v1/messages": ("via-messages", "via-chat")}

# The fields that have a place in the other dialect. Whatever else a request carries has to be named as dropped.
CARRIED = {
    "/v1/messages": {
        "model", "messages", "system", "tools", "tool_choice", "max_tokens", "stream", "stop_sequences", "temperature",
        "top_p", "thinking", "output_config", "metadata", "service_tier",
    },
    "/v1/chat/completions": {
        "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens", "max_completion_tokens", "stream",
        "stream_options", "stop", "temperature", "top_p", "response_format", "reasoning_effort", "user", "safety_identifier",
        "service_tier",
    },
}


def found(value, key):
    """The values of a key, wherever it stands."""
    if isinstance(value, list):
        return [deep for item in value for deep in found(item, key)]
    if isinstance(value, dict):
        own = [value[key]] if key in value else []
        return own + [deep for item in value.values() for deep in found(item, key)]
    return []


SIGNATURES = sorted({signature for path in FIXTURES for signature in found(json.loads(path.read_text())["body"], "signature")})


@pytest.fixture(scope="module")
def lab(folder):
    """A lab that has given out the recordings' thinking signatures itself, since it refuses any other, as its model does."""
    rules = "".join(
        f'[[rule]]\nbody_contains = "signature {number}"\nthinking = "…"\nsignature = {json.dumps(signature)}\n'
        for number, signature in enumerate(SIGNATURES)
    )
    with Lab(folder, rules) as lab:
        for number, _ in enumerate(SIGNATURES):
            body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": f"signature {number}"}]}
            headers = [("x-api-key", "any"), ("anthropic-version", "2023-06-01"), ("content-type", "application/json")]
            assert request(lab.url, "POST", "/v1/messages", json.dumps(body).encode(), headers).status == 200
        yield lab
        assert lab.alive(), lab.tail()


def identity(path):
    return f"{path.parent.name}/{path.stem}"


def test_there_are_recordings_of_every_client():
    clients = {path.parent.name for path in FIXTURES}
    assert {"aider", "claude-code", "cline", "opencode", "qwen-code", "py-openai", "py-anthropic", "js-sdks"} <= clients
    assert len(FIXTURES) > 100


def send(gateway, recorded, body):
    path = recorded["target"].split("?")[0]
    key = ("authorization", f"Bearer {Gateway.KEY}") if "chat" in path else ("x-api-key", Gateway.KEY)
    headers = [(name, value) for name, value in recorded["headers"]] + [key]
    payload = None if body is None else json.dumps(body, ensure_ascii=False).encode()
    return request(gateway.url, recorded["method"], recorded["target"], payload, headers)


def check_answer(path, body, answer):
    assert answer.status == 200, answer
    assert answer.headers["x-turnkeep-turn"]
    if path == "/v1/messages/count_tokens":
        assert answer.json()["input_tokens"] >= 1
    elif not body.get("stream"):
        whole = answer.json()
        assert whole["choices"] if path == "/v1/chat/completions" else whole["content"]
    elif path == "/v1/chat/completions":
        assert answer.headers["content-type"].startswith("text/event-stream")
        chunks = sse.chat(io.BytesIO(answer.body))
        assert [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]][-1]
    else:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert sse.messages(io.BytesIO(answer.body))[0]["type"] == "message_start"


def turns():
    for path in FIXTURES:
        recorded = json.loads(path.read_text())
        target = recorded["target"].split("?")[0]
        for named, (same, other) in ROUTES.items():
            if target in (named, f"{named}/count_tokens"):
                yield pytest.param(recorded, same, False, id=f"{identity(path)}-same")
                yield pytest.param(recorded, other, True, id=f"{identity(path)}-translated")


@pytest.mark.parametrize("recorded, route, translated", list(turns()))
def test_a_recorded_turn_is_accepted_and_answered(gateway, recorded, route, translated):
    path = recorded["target"].split("?")[0]
    body = {**recorded["body"], "model": route}
    answer = send(gateway, recorded, body)
    check_answer(path, body, answer)
    dropped = {name.strip() for name in answer.headers.get("x-turnkeep-dropped", "").split(",") if name.strip()}
    if not translated:
        assert not dropped
    elif not path.endswith("count_tokens"):
        for field in body.keys() - CARRIED[path]:
            assert any(name == field or name.startswith((f"{field}.", f"{field}[")) for name in dropped), (field, dropped)
        if path == "/v1/messages":
            assert ("cache_control" in dropped) == bool(found(body, "cache_control")), dropped
            assert not found(body["messages"], "signature") or "thinking" in dropped, dropped


@pytest.mark.parametrize(
    "recorded",
    [
        pytest.param(recorded, id=identity(path))
        for path in FIXTURES
        if (recorded := json.loads(path.read_text()))["method"] != "POST"
    ],
)
def test_a_recorded_side_request_is_answered(gateway, recorded):
    answer = send(gateway, recorded, None)
    assert answer.status == 200, answer
    if recorded["method"] == "GET":
        assert {model["id"] for model in answer.json()["data"]} == set(EVERY_ROUTE)
