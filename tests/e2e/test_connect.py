"""The Connect upstream against a server that others wrote: @connectrpc/connect-node, over Connect and gRPC, in both codecs, for
clients of two dialects, streamed and not."""

import json
import shutil
import socket

import pytest

from processes import BINARY, Gateway, Process, environment, request, until
from test_js_sdks import INSTALLED, JS

XTASK = BINARY.with_name("xtask")
WAYS = [("connect", "proto"), ("connect", "json"), ("grpc", "proto"), ("grpc", "json")]
NAMES = [f"{protocol}-{codec}" for protocol, codec in WAYS]
CONTENT = "héllo " + "x" * 5000
TOOL = {"name": "get_weather", "description": "Weather.", "parameters": {"type": "object"}}


@pytest.fixture(scope="module")
def backend(folder):
    assert INSTALLED.is_dir(), "the JavaScript packages are not installed: run tests/setup/install.sh"
    beside = folder / "connect"
    beside.mkdir()
    (beside / "node_modules").symlink_to(INSTALLED)
    shutil.copy(JS / "connect_server.mjs", beside)
    descriptors = beside / "schemas.binpb"
    with Process("descriptors", [XTASK, "proto", "--descriptors", descriptors], folder) as made:
        until(lambda: not made.alive(), f"the descriptors\n{made.log}")
        assert made.child.returncode == 0, made.tail()
    env = environment(DESCRIPTORS=str(descriptors))
    with Process("backend", ["node", beside / "connect_server.mjs"], folder, env=env, read_line=True) as backend:
        backend.ports = json.loads(backend.line_with("http1"))
        yield backend
        assert backend.alive(), backend.tail()


@pytest.fixture(scope="module")
def gateway(folder, backend):
    upstreams = [
        {
            "name": name,
            "kind": "connect",
            "base_url": f"http://127.0.0.1:{backend.ports['http2' if protocol == 'grpc' else 'http1']}",
            "more": f'protocol = "{protocol}"\ncodec = "{codec}"',
        }
        for name, (protocol, codec) in zip(NAMES, WAYS)
    ]
    models = [{"name": name, "routes": [(name, "own")]} for name in NAMES]
    with Gateway(folder, upstreams, models, name="connect-gateway") as gateway:
        yield gateway
        assert gateway.alive(), gateway.tail()


def chat(gateway, model, text, **more):
    body = {"model": model, "messages": [{"role": "user", "content": text}], **more}
    headers = [("content-type", "application/json"), ("authorization", f"Bearer {Gateway.KEY}")]
    return request(gateway.url, "POST", "/v1/chat/completions", json.dumps(body).encode(), headers)


def asked(backend):
    return json.loads(backend.line_with('"asked"'))


@pytest.mark.parametrize("model", NAMES)
def test_a_chat_turn_reaches_the_server_whole_and_its_answer_the_client(gateway, backend, model):
    answer = chat(gateway, model, "hi", tools=[{"type": "function", "function": TOOL}], temperature=0.5, max_tokens=9)
    assert answer.status == 200, f"{answer}\n{gateway.tail()}"
    reply = answer.json()
    choice = reply["choices"][0]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", CONTENT)
    call = choice["message"]["tool_calls"][0]
    assert (call["id"], call["function"]) == ("c1", {"name": "get_weather", "arguments": '{"city":"Paris"}'})
    assert (reply["usage"]["prompt_tokens"], reply["usage"]["completion_tokens"]) == (11, 7)
    heard = asked(backend)
    assert heard["protocol"] == model.split("-")[0] and heard["timed"]
    assert heard["asked"]["messages"] == [{"role": "ROLE_USER", "parts": [{"text": "hi"}]}]
    assert heard["asked"]["sampling"] == {"temperature": 0.5} and heard["asked"]["maxOutputTokens"] == "9"
    assert heard["asked"]["tools"][0]["name"] == "get_weather" and heard["asked"]["model"] == "own"


@pytest.mark.parametrize("model", NAMES)
def test_a_streamed_messages_turn_ends_as_the_server_did(gateway, backend, model):
    def messages(text):
        body = {"model": model, "max_tokens": 99, "stream": True, "messages": [{"role": "user", "content": text}]}
        headers = [("content-type", "application/json"), ("x-api-key", Gateway.KEY), ("anthropic-version", "2023-06-01")]
        answer = request(gateway.url, "POST", "/v1/messages", json.dumps(body).encode(), headers)
        asked(backend)
        return [line.removeprefix("event: ") for line in answer.text.splitlines() if line.startswith("event: ")]

    assert messages("hi")[-1] == "message_stop"
    broken = messages("break")
    assert broken[-1] == "error" and "message_stop" not in broken


@pytest.mark.parametrize("model", NAMES)
def test_the_servers_refusal_is_the_clients_with_its_wait(gateway, backend, model):
    answer = chat(gateway, model, "refuse")
    asked(backend)
    assert (answer.status, answer.headers.get("retry-after")) == (429, "7"), answer


# With gateways of its own: a refusal lets the other's account rest.
@pytest.mark.parametrize("model", NAMES)
def test_a_client_that_leaves_cancels_the_call_at_the_server(folder, backend, model):
    protocol, codec = model.split("-")
    port = backend.ports["http2" if protocol == "grpc" else "http1"]
    more = f'protocol = "{protocol}"\ncodec = "{codec}"'
    upstream = {"name": "own", "kind": "connect", "base_url": f"http://127.0.0.1:{port}", "more": more}
    with Gateway(folder, [upstream], [{"name": "own", "routes": [("own", "own")]}], name=f"leaving-{model}") as gateway:
        body = json.dumps({"model": "own", "stream": True, "messages": [{"role": "user", "content": "hang"}]})
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as client:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {Gateway.KEY}\r\n"
            head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            client.sendall((head + body).encode())
            seen = b""
            while b'"so"' not in seen:
                more = client.recv(4096)
                assert more, seen
                seen += more
        assert json.loads(backend.line_with('"cancelled"')) == {"cancelled": protocol}
