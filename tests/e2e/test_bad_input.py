"""Whatever a client sends, the answer is a 4xx in the dialect of the path that says what is wrong and where.

Raw bytes over raw sockets, since no SDK would send these. After each of them the gateway has to serve the next turn.
"""

import http.client
import json
import socket
import subprocess
import time

import pytest

from processes import BINARY, Answer, Gateway, environment, request
from sdk_scene import ROUTES

MAX_BODY = 32 * 1024 * 1024
PATHS = ["/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens"]
TURN_PATHS = PATHS[:2]
RESPONSES = "/v1/responses"
# The model is in the path.
GEMINI = "/v1beta/models/via-chat:generateContent"

every_dialects_path = pytest.mark.parametrize("path", [*PATHS, RESPONSES, GEMINI], ids=lambda path: path.rsplit("/", 1)[1])
every_path = pytest.mark.parametrize("path", PATHS)
every_turn_path = pytest.mark.parametrize("path", TURN_PATHS)
every_route = pytest.mark.parametrize("route", ROUTES)

KEY = ("authorization", f"Bearer {Gateway.KEY}")
JSON = ("content-type", "application/json")
VERSION = ("anthropic-version", "2023-06-01")


def post(gateway, path, body, headers=(KEY, JSON, VERSION)):
    return request(gateway.url, "POST", path, body, headers)


def good(path, route):
    if path == RESPONSES:
        return {"model": route, "input": "hi"}
    if path == GEMINI:
        return {"contents": [{"parts": [{"text": "hi"}]}]}
    body = {"model": route, "max_tokens": 20, "messages": [{"role": "user", "content": "hi"}]}
    if path.endswith("count_tokens"):
        del body["max_tokens"]
    return body


def refused(answer, path, status, *named):
    """Checks the dialect's own error shape, that the message names each of `named`, and that no upstream was asked."""
    assert answer.status == status, answer
    assert answer.headers.get("x-turnkeep-attempts", "0") == "0", answer
    assert answer.headers["x-turnkeep-turn"], answer
    assert answer.headers["content-type"].startswith("application/json"), answer
    body = answer.json()
    if path == GEMINI:
        assert body["error"]["code"] == status and body["error"]["status"].isupper(), body
    elif "/messages" in path:
        assert body["type"] == "error", body
        assert isinstance(body["error"]["type"], str) and body["error"]["type"].endswith(("_error", "_large")), body
    else:
        assert {"message", "type", "param", "code"} <= body["error"].keys(), body
    message = body["error"]["message"]
    for name in named:
        assert name in message, f"{name!r} is not named in {message!r}"
    return body["error"]


@pytest.fixture(autouse=True)
def still_serves(gateway):
    yield
    assert gateway.alive(), gateway.tail()
    answer = post(gateway, "/v1/chat/completions", json.dumps(good("/v1/chat/completions", "via-chat")).encode())
    assert answer.status == 200, answer
    assert "panicked" not in gateway.tail()


# --- bodies that are not a request -----------------------------------------------------------------------------------


@every_dialects_path
@pytest.mark.parametrize(
    "body",
    [b"", b"hello", b"{", b'{"model":', b'{"model":"via-chat",}', b"{'model': 'via-chat'}", b'{"model":"via-chat"} x'],
    ids=["empty", "text", "cut", "cut-value", "trailing-comma", "single-quotes", "trailing-text"],
)
def test_a_body_that_is_not_json_is_refused(gateway, path, body):
    refused(post(gateway, path, body), path, 400, "JSON")


@every_dialects_path
@pytest.mark.parametrize("body", [b"null", b"[]", b'[{"model":"via-chat"}]', b'"text"', b"7", b"true"])
def test_a_body_that_is_json_but_no_object_is_refused(gateway, path, body):
    refused(post(gateway, path, body), path, 400, "object")


@every_dialects_path
@pytest.mark.parametrize("opening, closing", [(b"[", b"]"), (b'{"a":', b"}")], ids=["arrays", "objects"])
def test_a_body_nested_ten_thousand_deep_is_refused(gateway, path, opening, closing):
    depth = 10_000
    deep = opening * depth + b"1" + closing * depth
    refused(post(gateway, path, deep), path, 400)
    inside = json.dumps({**good(path, "via-chat"), "metadata": "HERE"}).encode().replace(b'"HERE"', deep)
    refused(post(gateway, path, inside), path, 400)


@every_dialects_path
@pytest.mark.parametrize("route", ROUTES)
def test_invalid_utf8_inside_a_string_is_refused(gateway, path, route):
    body = json.dumps(good(path, route)).encode().replace(b'"hi"', b'"h\xff\xfei"')
    refused(post(gateway, path, body), path, 400, "UTF-8")


@every_dialects_path
def test_a_body_of_33_mib_is_refused_as_too_large(gateway, path):
    body = json.dumps({**good(path, "via-chat"), "filler": "x" * (33 * 1024 * 1024)}).encode()
    assert len(body) > MAX_BODY
    # Announced: the gateway need not read it, so the answer is read while the body may still be on its way.
    refused(send_while_reading(gateway, path, [("content-length", str(len(body)))], body), path, 413)


@every_dialects_path
def test_a_chunked_body_that_grows_past_the_limit_is_refused_as_too_large(gateway, path):
    piece = b"x" * 65536
    chunk = b"%x\r\n%s\r\n" % (len(piece), piece)
    body = chunk * (MAX_BODY // len(piece) + 2) + b"0\r\n\r\n"
    refused(send_while_reading(gateway, path, [("transfer-encoding", "chunked")], body), path, 413)


def send_while_reading(gateway, path, headers, body):
    """Sends a body that the other side may stop reading, and reads the answer all the same."""
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as peer:
        peer.sendall(head(path, [KEY, JSON, VERSION, *headers]))
        try:
            peer.sendall(body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # It has answered already; what it said is still to be read.
        return read_answer(peer)


def head(path, headers, method="POST"):
    lines = [f"{method} {path} HTTP/1.1", "host: gateway", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode()


def read_answer(peer):
    answer = http.client.HTTPResponse(peer)
    answer.begin()
    return Answer(answer.status, answer.getheaders(), answer.read())


# --- fields ----------------------------------------------------------------------------------------------------------


MISSING = [
    *((path, field) for path in PATHS for field in ("model", "messages")),
    *((RESPONSES, field) for field in ("model", "input")),
    (GEMINI, "contents"),
]


@pytest.mark.parametrize("path, field", MISSING, ids=[f"{path.rsplit('/', 1)[1]}-{field}" for path, field in MISSING])
def test_a_missing_required_field_is_named(gateway, path, field):
    body = good(path, "via-chat")
    del body[field]
    error = refused(post(gateway, path, json.dumps(body).encode()), path, 400, field)
    if path in (PATHS[0], RESPONSES):
        assert error["param"] == field


@every_route
def test_a_missing_max_tokens_is_named_to_a_messages_client(gateway, route):
    body = good("/v1/messages", route)
    del body["max_tokens"]
    refused(post(gateway, "/v1/messages", json.dumps(body).encode()), "/v1/messages", 400, "max_tokens")


WRONG_TYPES = [
    ("model", 7, "model"),
    ("model", None, "model"),
    ("messages", "text", "messages"),
    ("messages", {}, "messages"),
    ("messages", ["text"], "messages"),
    ("messages", [{"content": "hi"}], "role"),
    ("messages", [{"role": 3, "content": "hi"}], "role"),
    ("messages", [{"role": "nobody", "content": "hi"}], "role"),
    ("messages", [{"role": "user", "content": 5}], "content"),
    ("messages", [{"role": "user", "content": [{"text": "no type"}]}], "type"),
    ("messages", [{"role": "user", "content": [{"type": "text", "text": 5}]}], "text"),
    ("stream", "yes", "stream"),
    ("temperature", "hot", "temperature"),
    ("max_tokens", "many", "max_tokens"),
    ("tools", {}, "tools"),
    ("tools", ["text"], "tools"),
    ("tool_choice", 5, "tool_choice"),
    ("metadata", "text", "metadata"),
    ("top_p", {}, "top_p"),
]

# Fields that only one of the dialects has, or has in another place.
WRONG_IN_CHAT = [
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0].image_url"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, "image_url.url"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
    ({"messages": [{"role": "assistant", "tool_calls": [{"type": "function", "function": {}}]}]}, "tool_calls[0].id"),
    ({"max_completion_tokens": 1.5}, "max_completion_tokens"),
    ({"n": "two"}, "n"),
    ({"stream_options": 1}, "stream_options"),
    ({"stream_options": {"include_usage": "yes"}}, "stream_options.include_usage"),
    ({"response_format": "json"}, "response_format"),
    ({"tools": [{"type": "function"}]}, "tools[0].function"),
    ({"tools": [{"type": "function", "function": {"name": 5}}]}, "tools[0].function.name"),
    ({"tools": [{"type": "function", "function": {"name": "f", "description": 5}}]}, "tools[0].function.description"),
    ({"tool_choice": {"function": {"name": "f"}}}, "tool_choice.type"),
    ({"response_format": {"type": 5}}, "response_format.type"),
    ({"parallel_tool_calls": "no"}, "parallel_tool_calls"),
    ({"stop": 5}, "stop"),
    ({"seed": "x"}, "seed"),
]
WRONG_IN_MESSAGES = [
    ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages[0].content[0].source"),
    ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, "messages[0].content[0].tool_use_id"),
    ({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}]}, "messages[0].content[0].name"),
    ({"messages": [{"role": "assistant", "content": [{"type": "thinking"}]}]}, "messages[0].content[0].thinking"),
    ({"max_tokens": None}, "max_tokens"),
    ({"system": 5}, "system"),
    ({"system": [{"type": "text", "text": None}]}, "system[0].text"),
    ({"tools": [{"input_schema": {"type": "object"}}]}, "tools[0].name"),
    ({"tools": [{"name": "f", "input_schema": "x"}]}, "tools[0].input_schema"),
    ({"tool_choice": "auto"}, "tool_choice"),
    ({"tool_choice": {"name": "f"}}, "tool_choice.type"),
    ({"thinking": True}, "thinking"),
    ({"thinking": {"budget_tokens": 1024}}, "thinking.type"),
    ({"stop_sequences": "x"}, "stop_sequences"),
    ({"stop_sequences": [1]}, "stop_sequences[0]"),
    ({"top_k": "x"}, "top_k"),
]


@every_turn_path
@every_route
@pytest.mark.parametrize("field, value, named", WRONG_TYPES, ids=[f"{f}-{n}" for n, (f, _, _) in enumerate(WRONG_TYPES)])
def test_a_field_of_the_wrong_type_is_named_on_the_same_dialect_route_too(gateway, path, route, field, value, named):
    body = {**good(path, route), field: value}
    refused(post(gateway, path, json.dumps(body).encode()), path, 400, named)


@every_route
@pytest.mark.parametrize("path, fields, named", [
    pytest.param(path, fields, named, id=f"{path.rsplit('/', 1)[1]}-{number}-{named}")
    for path, wrong in zip(TURN_PATHS, (WRONG_IN_CHAT, WRONG_IN_MESSAGES))
    for number, (fields, named) in enumerate(wrong)
])
def test_a_field_of_one_dialect_that_is_wrong_is_named_by_its_path(gateway, route, path, fields, named):
    error = refused(post(gateway, path, json.dumps({**good(path, route), **fields}).encode()), path, 400, named)
    if "chat" in path:
        assert error["param"].endswith(named), error


WRONG_IN_RESPONSES = [
    ({"input": 5}, "input"),
    ({"input": ["text"]}, "input[0]"),
    ({"input": [{"role": "nobody", "content": "hi"}]}, "input[0].role"),
    ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
    ({"input": [{"type": "function_call", "call_id": "c", "arguments": "{}"}]}, "input[0].name"),
    ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text"),
    ({"instructions": 5}, "instructions"),
    ({"tools": [{"type": "function"}]}, "tools[0].name"),
    ({"stream": "yes"}, "stream"),
    ({"store": "no"}, "store"),
    ({"max_output_tokens": "many"}, "max_output_tokens"),
    ({"previous_response_id": 5}, "previous_response_id"),
    ({"previous_response_id": "resp_a", "conversation": "conv_a"}, "previous_response_id"),
    ({"text": {"format": {"type": "json_schema"}}}, "text.format"),
]
WRONG_IN_GEMINI = [
    ({"contents": "text"}, "contents"),
    ({"contents": ["text"]}, "contents[0]"),
    ({"contents": [{"role": "nobody", "parts": [{"text": "hi"}]}]}, "contents[0].role"),
    ({"contents": [{"parts": "text"}]}, "contents[0].parts"),
    ({"contents": [{"parts": [{"text": 5}]}]}, "contents[0].parts[0].text"),
    ({"contents": [{"parts": [{"functionResponse": {"response": {}}}]}]}, "contents[0].parts[0].functionResponse.name"),
    ({"contents": [{"parts": [{"inlineData": {"data": "aGk="}}]}]}, "contents[0].parts[0].inlineData.mimeType"),
    ({"generationConfig": []}, "generationConfig"),
    ({"generationConfig": {"temperature": "hot"}}, "generationConfig.temperature"),
    ({"generationConfig": {"stopSequences": "x"}}, "generationConfig.stopSequences"),
    ({"tools": [{"functionDeclarations": [{}]}]}, "tools[0].functionDeclarations[0].name"),
    ({"toolConfig": 5}, "toolConfig"),
]


@every_route
@pytest.mark.parametrize("fields, named", WRONG_IN_RESPONSES, ids=[f"{n}-{named}" for n, (_, named) in enumerate(WRONG_IN_RESPONSES)])
def test_a_wrong_field_of_a_responses_client_is_named_by_its_path(gateway, route, fields, named):
    error = refused(post(gateway, RESPONSES, json.dumps({**good(RESPONSES, route), **fields}).encode()), RESPONSES, 400, named)
    assert error["param"].startswith(named.split("[")[0]), error


@every_route
@pytest.mark.parametrize("fields, named", WRONG_IN_GEMINI, ids=[named for _, named in WRONG_IN_GEMINI])
def test_a_wrong_field_of_a_gemini_client_is_named_by_its_path(gateway, route, fields, named):
    path = GEMINI.replace("via-chat", route)
    refused(post(gateway, path, json.dumps({**good(GEMINI, route), **fields}).encode()), GEMINI, 400, named)


@pytest.mark.parametrize("path, route", [("/v1/chat/completions", "via-messages"), ("/v1/messages", "via-chat")])
def test_a_conversation_without_content_is_refused_where_it_would_have_to_be_translated(gateway, path, route):
    body = {**good(path, route), "messages": [{"role": "user", "content": ""}]}
    refused(post(gateway, path, json.dumps(body).encode()), path, 400, "messages", "content")


@every_path
@every_route
def test_a_field_given_twice_is_refused_when_it_decides_the_route(gateway, path, route):
    text = json.dumps(good(path, route))
    twice = text[:-1] + f', "model": "{route}"}}'
    refused(post(gateway, path, twice.encode()), path, 400, "model")


@every_dialects_path
def test_an_unknown_model_is_not_found_and_near_names_are_told(gateway, path):
    body = good(path, "via-chatt")
    error = refused(post(gateway, path.replace("via-chat", "via-chatt"), json.dumps(body).encode()), path, 404, "via-chatt", "via-chat")
    if path in (PATHS[0], RESPONSES):
        assert error["code"] == "model_not_found"


# --- as many elements as a body may hold -----------------------------------------------------------------------------


MANY_TURNS = 100_000
MANY_TOOLS = 1_000
# Seconds, on a busy machine.
SOON = 30
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}

every_big_body = pytest.mark.parametrize("path", [*TURN_PATHS, RESPONSES, GEMINI], ids=["chat", "messages", "responses", "gemini"])


def big(path, route):
    """A body of many turns, the user's the last, and many tools; its list of turns and its list of tools."""
    names = [f"tool_{number}" for number in range(MANY_TOOLS)]
    roles = ["user", "model" if path == GEMINI else "assistant"]
    said = [(roles[number % 2], f"hi {number}") for number in range(MANY_TURNS + 1)]
    if path == GEMINI:
        tools = [{"name": name, "parameters": SCHEMA} for name in names]
        turns = [{"role": role, "parts": [{"text": text}]} for role, text in said]
        return {"contents": turns, "tools": [{"functionDeclarations": tools}]}, turns, tools
    turns = [{"role": role, "content": text} for role, text in said]
    if path == RESPONSES:
        tools = [{"type": "function", "name": name, "parameters": SCHEMA} for name in names]
        return {"model": route, "input": turns, "tools": tools}, turns, tools
    if path == "/v1/messages":
        tools = [{"name": name, "input_schema": SCHEMA} for name in names]
    else:
        tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in names]
    return {**good(path, route), "messages": turns, "tools": tools}, turns, tools


def post_soon(gateway, path, body):
    began = time.monotonic()
    answer = post(gateway, path, json.dumps(body).encode())
    took = time.monotonic() - began
    assert took < SOON, f"answered after {took:.1f} s"
    return answer


@every_big_body
@every_route
def test_a_hundred_thousand_turns_and_a_thousand_tools_are_answered_soon(gateway, path, route):
    body, turns, _ = big(path, route)
    answer = post_soon(gateway, path.replace("via-chat", route), body)
    assert answer.status == 200, answer
    # The lab quotes the last turn: it got them all.
    assert f"hi {len(turns) - 1}" in json.dumps(answer.json()), answer


@every_big_body
@every_route
def test_the_one_broken_turn_after_a_hundred_thousand_is_named_soon(gateway, path, route):
    body, turns, _ = big(path, route)
    turns[-1] = "text"
    field = {RESPONSES: "input", GEMINI: "contents"}.get(path, "messages")
    refused(post_soon(gateway, path.replace("via-chat", route), body), path, 400, f"{field}[{MANY_TURNS}]")


@every_big_body
@every_route
def test_the_one_broken_tool_of_a_thousand_is_named_soon(gateway, path, route):
    body, _, tools = big(path, route)
    tool = tools[-1]
    del tool.get("function", tool)["name"]
    place = f"functionDeclarations[{MANY_TOOLS - 1}].name" if path == GEMINI else f"tools[{MANY_TOOLS - 1}]"
    refused(post_soon(gateway, path.replace("via-chat", route), body), path, 400, place, "name")


# --- the request around the body -------------------------------------------------------------------------------------


@every_dialects_path
@pytest.mark.parametrize(
    "key",
    [None, ("authorization", "Bearer wrong"), ("x-api-key", "wrong"), ("authorization", "Basic d3Jvbmc6"), ("authorization", "Bearer")],
    ids=["none", "wrong-bearer", "wrong-x-api-key", "basic", "empty-bearer"],
)
def test_a_missing_or_wrong_key_is_refused_before_the_body_is_read(gateway, path, key):
    # A length is announced and no byte of it sent: only an answer that does not wait for the body can come.
    headers = [JSON, VERSION, ("content-length", "1000"), *([key] if key else [])]
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=10) as peer:
        peer.sendall(head(path, headers))
        refused(read_answer(peer), path, 401)


@every_dialects_path
def test_a_connection_that_was_refused_before_its_body_still_serves_the_next_request(gateway, path):
    good_body = json.dumps(good(path, "via-messages")).encode()
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=10) as peer:
        peer.sendall(head(path, [JSON, VERSION, ("content-length", "100000")]))
        refused(read_answer(peer), path, 401)
        peer.sendall(b"x" * 100_000)
        peer.sendall(head(path, [KEY, JSON, VERSION, ("content-length", str(len(good_body)))]) + good_body)
        answer = read_answer(peer)
        assert answer.status == 200, answer


@every_path
def test_the_right_key_in_a_query_is_not_a_key_on_these_paths(gateway, path):
    answer = request(gateway.url, "POST", f"{path}?key={Gateway.KEY}", b"{}", [JSON])
    refused(answer, path, 401)


@every_dialects_path
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_a_wrong_method_is_refused_and_the_right_one_told(gateway, path, method):
    answer = request(gateway.url, method, path, None, [KEY, VERSION])
    refused(answer, path, 405)
    assert "POST" in answer.headers["allow"]


@every_dialects_path
@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "multipart/form-data; boundary=x"])
def test_a_wrong_content_type_is_refused_and_named(gateway, path, kind):
    body = json.dumps(good(path, "via-chat")).encode()
    refused(post(gateway, path, body, [KEY, VERSION, ("content-type", kind)]), path, 415, kind.split(";")[0])


@every_dialects_path
def test_a_content_type_with_a_charset_is_accepted(gateway, path):
    body = json.dumps(good(path, "via-messages")).encode()
    answer = post(gateway, path, body, [KEY, VERSION, ("content-type", "application/json; charset=utf-8")])
    assert answer.status == 200, answer


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/chat/completion", "/v1/messages/nothing", "/nothing"])
def test_an_unknown_path_is_not_found_in_the_dialect_nearest_to_it(gateway, path):
    answer = request(gateway.url, "POST", path, b"{}", [KEY, JSON])
    refused(answer, path, 404)


# --- configuration ---------------------------------------------------------------------------------------------------


CONFIGS = [
    ('[server]\nlisten = "127.0.0.1:0"\nlissten = "x"\n', "3", "lissten"),
    ('[server]\nlisten = 5\n', "2", "listen"),
    ('[server]\nlisten = "127.0.0.1:0"\n\n[[upstreams]]\nname = "a"\nkind = "nonsense"\nbase_url = "http://127.0.0.1:1"\n', "6", "kind"),
    ('[server\nlisten = "127.0.0.1:0"\n', "1", ""),
    ('[[keys]]\nname = "a"\nsecret = "literal-secret-in-a-file"\n', "3", "secret"),
]


@pytest.mark.parametrize("text, line, key", CONFIGS, ids=["unknown-key", "wrong-type", "bad-value", "no-toml", "plain-secret"])
def test_a_config_error_names_file_line_and_key(tmp_path, text, line, key):
    config = tmp_path / "broken.toml"
    config.write_text(text)
    for command in ("check", "serve"):
        ended = subprocess.run(
            [BINARY, command, "--config", config], capture_output=True, text=True, env=environment(), cwd=tmp_path, timeout=60
        )
        assert ended.returncode == 2, ended
        assert f"broken.toml:{line}" in ended.stderr and key in ended.stderr, ended.stderr
        assert "literal-secret" not in ended.stderr
