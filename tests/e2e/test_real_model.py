"""A real model behind real llama.cpp servers, through the gateway, in both client dialects.

Structure is asserted, not wording: the model is tiny. Answers are at most 16 tokens, 64 for the tool call and the JSON.
"""

import http.client
import io
import json

import pytest

import sse
from processes import Gateway, Model, request, until

CONTEXT = 1024
KINDS = ["as-openai", "as-responses", "as-anthropic"]
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 1, "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def model(folder):
    with Model(folder, context=CONTEXT) as model:
        yield model
        assert model.alive(), model.tail()


@pytest.fixture(scope="module")
def gateway(folder, model):
    """The llama.cpp server speaks three of the upstream dialects, so one server stands behind three kinds."""
    upstreams = [
        {"name": "openai-kind", "kind": "openai", "base_url": f"{model.url}/v1"},
        {"name": "responses-kind", "kind": "openai-responses", "base_url": f"{model.url}/v1"},
        {"name": "anthropic-kind", "kind": "anthropic", "base_url": model.url},
    ]
    models = [
        {"name": "as-openai", "routes": [("openai-kind", "small")]},
        {"name": "as-responses", "routes": [("responses-kind", "small")]},
        {"name": "as-anthropic", "routes": [("anthropic-kind", "small")]},
    ]
    with Gateway(folder, upstreams, models) as gateway:
        yield gateway
        assert gateway.alive(), gateway.tail()


class Chat:
    path = "/v1/chat/completions"

    @staticmethod
    def text(answer):
        return answer["choices"][0]["message"]["content"]

    @staticmethod
    def end(answer):
        return answer["choices"][0]["finish_reason"]

    @staticmethod
    def tokens(answer):
        return answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]

    ends = {"stop", "length"}

    @staticmethod
    def headers():
        return [("authorization", f"Bearer {Gateway.KEY}"), ("content-type", "application/json")]


class Messages:
    path = "/v1/messages"

    @staticmethod
    def text(answer):
        return "".join(block["text"] for block in answer["content"] if block["type"] == "text")

    @staticmethod
    def end(answer):
        return answer["stop_reason"]

    @staticmethod
    def tokens(answer):
        usage = answer["usage"]
        cached = usage.get("cache_read_input_tokens") or 0
        return usage["input_tokens"] + cached, usage["output_tokens"]

    ends = {"end_turn", "max_tokens"}

    @staticmethod
    def headers():
        return [
            ("x-api-key", Gateway.KEY), ("content-type", "application/json"), ("anthropic-version", "2023-06-01"),
        ]


DIALECTS = [Chat, Messages]
both_dialects = pytest.mark.parametrize("dialect", DIALECTS, ids=["chat", "messages"])
both_kinds = pytest.mark.parametrize("kind", KINDS)


def ask(gateway, dialect, model, messages, max_tokens=16, **more):
    body = {"model": model, "max_tokens": max_tokens, "messages": messages, "temperature": 0, **more}
    return request(gateway.url, "POST", dialect.path, json.dumps(body).encode(), dialect.headers(), timeout=120)


def user(text):
    return [{"role": "user", "content": text}]


@both_kinds
@both_dialects
def test_a_whole_answer_comes_from_the_real_model(gateway, dialect, kind):
    answer = ask(gateway, dialect, kind, user("Say hello."))
    assert answer.status == 200, answer
    whole = answer.json()
    assert dialect.text(whole).strip()
    assert dialect.end(whole) in dialect.ends
    read, written = dialect.tokens(whole)
    assert read >= 3 and 1 <= written <= 16


@both_kinds
def test_a_chat_client_streams_from_the_real_model(gateway, kind):
    answer = ask(gateway, Chat, kind, user("Say hello."), stream=True, stream_options={"include_usage": True})
    assert answer.status == 200, answer
    chunks = sse.chat(io.BytesIO(answer.body))
    assert "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"]).strip()
    assert [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]][-1] in Chat.ends
    assert chunks[-1]["usage"]["completion_tokens"] >= 1


@both_kinds
def test_a_messages_client_streams_from_the_real_model(gateway, kind):
    answer = ask(gateway, Messages, kind, user("Say hello."), stream=True)
    assert answer.status == 200, answer
    events = sse.messages(io.BytesIO(answer.body))
    assert events[0]["type"] == "message_start"
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas).strip()
    [end] = [event for event in events if event["type"] == "message_delta"]
    assert end["delta"]["stop_reason"] in Messages.ends and end["usage"]["output_tokens"] >= 1


def test_a_chat_client_gets_json_that_fits_its_schema(gateway):
    schema = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
    answer = ask(gateway, Chat, "as-openai", user("Bob is 5 years old. As JSON."), 64, response_format=schema)
    assert answer.status == 200, answer
    check_person(Chat.text(answer.json()))


def test_a_messages_client_gets_json_that_fits_its_schema(gateway):
    wanted = {"format": {"type": "json_schema", "schema": PERSON}}
    answer = ask(gateway, Messages, "as-openai", user("Bob is 5 years old. As JSON."), 64, output_config=wanted)
    assert answer.status == 200, answer
    check_person(Messages.text(answer.json()))


def check_person(text):
    person = json.loads(text)
    assert person.keys() == {"name", "age"}
    assert isinstance(person["name"], str) and 1 <= person["age"] <= 99


EXAMPLES = ["Paris", "Rome", "Oslo"]


@both_kinds
def test_a_chat_client_gets_a_tool_call_after_three_example_calls(gateway, kind):
    history = []
    for number, city in enumerate(EXAMPLES):
        call = {"name": "get_weather", "arguments": json.dumps({"city": city})}
        history += [
            *user(f"What is the weather in {city}?"),
            {"role": "assistant", "content": None, "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "sunny"},
            {"role": "assistant", "content": f"It is sunny in {city}."},
        ]
    tools = [{"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": CITY}}]
    answer = ask(gateway, Chat, kind, [*history, *user("What is the weather in Lima?")], 64, tools=tools)
    assert answer.status == 200, answer
    whole = answer.json()
    [call] = whole["choices"][0]["message"]["tool_calls"]
    assert Chat.end(whole) == "tool_calls"
    assert call["id"] and call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]).keys() == {"city"}


def weather_history_in_messages():
    history = []
    for number, city in enumerate(EXAMPLES):
        history += [
            *user(f"What is the weather in {city}?"),
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": f"toolu_{number}", "name": "get_weather", "input": {"city": city}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "sunny"},
            ]},
            {"role": "assistant", "content": f"It is sunny in {city}."},
        ]
    return [*history, *user("What is the weather in Lima?")]


WEATHER_IN_MESSAGES = [{"name": "get_weather", "description": "Weather", "input_schema": CITY}]


@both_kinds
def test_a_messages_client_gets_a_tool_call_after_three_example_calls(gateway, kind):
    answer = ask(gateway, Messages, kind, weather_history_in_messages(), 64, tools=WEATHER_IN_MESSAGES)
    assert answer.status == 200, answer
    whole = answer.json()
    [call] = [block for block in whole["content"] if block["type"] == "tool_use"]
    assert whole["stop_reason"] == "tool_use"
    assert call["id"] and call["name"] == "get_weather" and call["input"].keys() == {"city"}


def test_a_messages_client_streams_a_tool_call_after_three_example_calls(gateway):
    answer = ask(
        gateway, Messages, "as-openai", weather_history_in_messages(), 64, tools=WEATHER_IN_MESSAGES, stream=True
    )
    assert answer.status == 200, answer
    events = sse.messages(io.BytesIO(answer.body))
    starts = [event for event in events if event["type"] == "content_block_start"]
    [call] = [start for start in starts if start["content_block"]["type"] == "tool_use"]
    parts = [
        event["delta"]["partial_json"] for event in events
        if event["type"] == "content_block_delta" and event["index"] == call["index"]
    ]
    assert json.loads("".join(parts)).keys() == {"city"}
    assert [e["delta"]["stop_reason"] for e in events if e["type"] == "message_delta"] == ["tool_use"]


@both_kinds
@both_dialects
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_the_real_refusal_of_a_too_long_prompt_arrives_in_the_clients_dialect(gateway, dialect, kind, stream):
    answer = ask(gateway, dialect, kind, user("word " * (2 * CONTEXT)), stream=stream)
    assert answer.status == 400, answer
    body = answer.json()
    message = body["error"]["message"]
    assert "context" in message and str(CONTEXT) in message
    if dialect is Chat:
        assert set(body["error"]) >= {"message", "type", "param", "code"}
    else:
        assert body["type"] == "error" and body["error"]["type"] == "invalid_request_error"


@both_dialects
def test_a_client_that_leaves_mid_stream_frees_the_models_slot(gateway, model, dialect):
    # Far more than 16 tokens, so that only a cancel can end it soon: the client reads one piece of content and goes.
    body = {"model": "as-openai", "max_tokens": 900, "messages": user("Count from one to a thousand."), "stream": True}
    host, port = gateway.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.request("POST", dialect.path, json.dumps(body).encode(), dict(dialect.headers()))
    answer = connection.getresponse()
    assert answer.status == 200
    for _, data in sse.events(answer):
        if '"content"' in data or "text_delta" in data:
            break
    until(lambda: model.processing() == 1, "the model is at work")
    answer.close()
    connection.close()
    until(lambda: model.processing() == 0, "the model's slot is free after the client left", seconds=5)


def test_the_next_turn_of_a_conversation_is_served_by_the_other_server_when_one_is_killed(folder):
    with Model(folder, "model-a", context=512) as one, Model(folder, "model-b", context=512) as other:
        upstreams = [
            {"name": "one", "kind": "openai", "base_url": f"{one.url}/v1"},
            {"name": "other", "kind": "openai", "base_url": f"{other.url}/v1"},
        ]
        models = [{"name": "both", "routes": [("one", "small"), ("other", "small")]}]
        with Gateway(folder, upstreams, models, name="gateway-of-two") as gateway:
            history = user("Say hello.")
            first = ask(gateway, Messages, "both", history)
            assert first.status == 200, first
            served, idle = (one, other) if predicted(one) else (other, one)
            assert not predicted(idle)
            served.kill()
            history += [{"role": "assistant", "content": first.json()["content"]}, *user("And again.")]
            second = ask(gateway, Messages, "both", history)
            assert second.status == 200, second
            assert Messages.text(second.json()).strip()
            assert predicted(idle)
            # And streamed, now that the gateway has seen it fail.
            third = ask(gateway, Chat, "both", user("Once more."), stream=True)
            assert third.status == 200 and sse.chat(io.BytesIO(third.body))


def predicted(model):
    """How many tokens a server has made so far, in its own words."""
    for line in request(model.url, "GET", "/metrics").text.splitlines():
        if line.startswith("llamacpp:tokens_predicted_total"):
            return float(line.split()[-1])
    raise AssertionError("the model server has no metric tokens_predicted_total")
