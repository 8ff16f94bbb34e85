"""What real clients sent, sent again: accepted as it is on every route, and answered.

The fixtures are recorded requests (see tools/sanitise_captures.py); only the model's name is replaced, by that of the route.
On a translated route whatever the target lacks must be named in `x-turnkeep-dropped`.
"""

import io
import json
import pathlib
import re

import pytest

import sse
from processes import ROOT, Gateway, Lab, request
from sdk_scene import ROUTES as EVERY_ROUTE

FIXTURES = sorted((ROOT / "fixtures" / "captures").glob("*/*.json"))
OWN = {"/v1/chat/completions": "via-chat", "/v1/responses": "via-responses", "/v1/messages": "via-messages"}

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


PROOFS = ("signature", "encrypted_content", "thoughtSignature", "thought_signature")
SIGNATURES = sorted(
    {proof for path in FIXTURES for name in PROOFS for proof in found(json.loads(path.read_text())["body"], name)}
)


@pytest.fixture(scope="module")
def lab(folder):
    """A lab that has given out the recordings' proofs of thinking itself, since it refuses any other, as its model does."""
    rules = "".join(
        f'[[rule]]\nbody_contains = "signature <{number}>"\nthinking = "…"\nsignature = {json.dumps(signature)}\n'
        for number, signature in enumerate(SIGNATURES)
    )
    with Lab(folder, rules) as lab:
        for number, _ in enumerate(SIGNATURES):
            body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": f"signature <{number}>"}]}
            headers = [("x-api-key", "any"), ("anthropic-version", "2023-06-01"), ("content-type", "application/json")]
            assert request(lab.url, "POST", "/v1/messages", json.dumps(body).encode(), headers).status == 200
        yield lab
        assert lab.alive(), lab.tail()


def identity(path):
    return f"{path.parent.name}/{path.stem}"


def test_there_are_recordings_of_every_client():
    clients = {path.parent.name for path in FIXTURES}
    assert {"aider", "claude-code", "cline", "opencode", "qwen-code", "py-openai", "py-anthropic", "js-sdks", "codex", "gemini-cli", "py-genai"} <= clients
    assert len(FIXTURES) > 100


def path_of(recorded):
    return recorded["target"].split("?")[0]


def dialect_of(path):
    """The route of the path's own dialect."""
    named = [route for prefix, route in OWN.items() if path in (prefix, f"{prefix}/count_tokens")]
    return named[0] if named else "via-gemini" if "/models/" in path and ":" in path else None


def send(gateway, recorded, body, route=None):
    names = {name.lower() for name, _ in recorded["headers"]}
    key = ("authorization", f"Bearer {Gateway.KEY}")
    if "anthropic-version" in names:
        key = ("x-api-key", Gateway.KEY)
    elif "x-goog-api-client" in names or "/v1beta/" in recorded["target"] or ":" in path_of(recorded):
        key = ("x-goog-api-key", Gateway.KEY)
    headers = [(name, value) for name, value in recorded["headers"]] + [key]
    payload = None if body is None else json.dumps(body, ensure_ascii=False).encode()
    target = recorded["target"] if route is None else re.sub(r"/models/[^/:]+:", f"/models/{route}:", recorded["target"])
    return request(gateway.url, recorded["method"], target, payload, headers)


def check_answer(target, body, answer):
    path = target.split("?")[0]
    assert answer.status == 200, answer
    assert answer.headers["x-turnkeep-turn"]
    if path == "/v1/messages/count_tokens":
        assert answer.json()["input_tokens"] >= 1
    elif path.endswith(":countTokens"):
        assert answer.json()["totalTokens"] >= 1
    elif not body.get("stream") and ":stream" not in path:
        whole = answer.json()
        assert whole[{"/v1/chat/completions": "choices", "/v1/responses": "output", "/v1/messages": "content"}.get(path, "candidates")]
    elif path == "/v1/chat/completions":
        chunks = sse.chat(io.BytesIO(answer.body))
        assert [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]][-1]
    elif path == "/v1/messages":
        assert sse.messages(io.BytesIO(answer.body))[0]["type"] == "message_start"
    elif path == "/v1/responses":
        assert sse.responses(io.BytesIO(answer.body))[-1]["type"] in ("response.completed", "response.incomplete")
    else:
        chunks = sse.gemini(io.BytesIO(answer.body)) if "alt=sse" in target else answer.json()
        assert chunks[-1]["candidates"][0]["finishReason"]


def turns():
    for path in FIXTURES:
        recorded = json.loads(path.read_text())
        if own := dialect_of(path_of(recorded)):
            for route in EVERY_ROUTE:
                yield pytest.param(recorded, route, route != own, id=f"{identity(path)}-{route}")


@pytest.mark.parametrize("recorded, route, translated", list(turns()))
def test_a_recorded_turn_is_accepted_and_answered(gateway, recorded, route, translated):
    path = path_of(recorded)
    body = {**recorded["body"], "model": route} if "model" in recorded["body"] else recorded["body"]
    answer = send(gateway, recorded, body, route)
    if refused := found_refusal(body, translated):
        assert 400 <= answer.status < 500 and refused in answer.text, answer
        return
    check_answer(recorded["target"], body, answer)
    dropped = {name.strip() for name in answer.headers.get("x-turnkeep-dropped", "").split(",") if name.strip()}
    if not translated:
        assert not dropped
    elif path in CARRIED and route in ("via-chat", "via-messages"):
        for field in body.keys() - CARRIED[path]:
            assert any(name == field or name.startswith((f"{field}.", f"{field}[")) for name in dropped), (field, dropped)
        if path == "/v1/messages":
            assert ("cache_control" in dropped) == bool(found(body, "cache_control")), dropped
            assert not found(body["messages"], "signature") or "thinking" in dropped, dropped


def found_refusal(body, translated):
    """What the answer names if the turn cannot be answered here: an id of another server's, a tool that its provider runs."""
    kinds = found(body, "type")
    if "item_reference" in kinds:
        return "stored item"
    for content in body.get("contents", ()):
        ids = [answer.get("id") for answer in found(content, "functionResponse")]
        # Gemini CLI sends a result twice when it takes a session up again; translated, the last one is carried.
        if len(ids) > len(set(ids)) and None not in ids and not translated:
            return "function response parts"
    return "compaction_trigger" if translated and "compaction_trigger" in kinds else None


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
        listed = answer.json()
        names = {model["id"] for model in listed["data"]} if "data" in listed else {model["name"] for model in listed["models"]}
        assert names in (set(EVERY_ROUTE), {f"models/{route}" for route in EVERY_ROUTE})
