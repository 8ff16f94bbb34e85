"""The official SDKs over a real model: a llama.cpp server as each kind of upstream that it can be.

Its /v1/responses is off the specification (events without numbers and places, a `response.created` of three fields), so that
the OpenAI SDK's stream helper cannot read it: it has to read what the gateway makes of it. Structure is asserted, not wording.
"""

import json

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from processes import Gateway, Model
from sdk_scene import CITY, user

KINDS = {"as-openai": ("openai", "/v1"), "as-responses": ("openai-responses", "/v1"), "as-anthropic": ("anthropic", "")}
every_kind = pytest.mark.parametrize("kind", KINDS)
ENDS = {"completed": None, "incomplete": "max_output_tokens"}
HELLO = "Say hello."


@pytest.fixture(scope="module")
def gateway(folder):
    with Model(folder, context=1024) as model:
        upstreams = [
            {"name": name, "kind": kind, "base_url": f"{model.url}{path}"} for name, (kind, path) in KINDS.items()
        ]
        models = [{"name": name, "routes": [(name, "small")]} for name in KINDS]
        with Gateway(folder, upstreams, models, name="over-model") as gateway:
            yield gateway
            assert gateway.alive(), gateway.tail()
        assert model.alive(), model.tail()


@pytest.fixture(scope="module")
def client(gateway):
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=Gateway.KEY, max_retries=0, timeout=120) as client:
        yield client


def check_end(response):
    reason = response.incomplete_details.reason if response.incomplete_details else None
    assert response.status in ENDS and reason == ENDS[response.status]
    assert response.usage.input_tokens >= 3 and 1 <= response.usage.output_tokens <= 16


@every_kind
def test_a_responses_client_gets_a_whole_answer(client, kind):
    answer = client.responses.create(model=kind, input=HELLO, max_output_tokens=16, temperature=0)
    assert answer.output_text.strip()
    check_end(answer)


@every_kind
def test_the_responses_stream_helper_reads_the_real_models_stream(client, kind):
    with client.responses.stream(model=kind, input=HELLO, max_output_tokens=16, temperature=0) as stream:
        events = list(stream)
    # The helper's own final response is for whole answers only, and sixteen tokens may not be one.
    final = events[-1].response
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds.count("response.output_item.added") == kinds.count("response.output_item.done") >= 1
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text.strip() and text == final.output_text
    check_end(final)


@every_kind
def test_a_conversation_goes_on_from_its_stored_turn(client, kind):
    first = client.responses.create(model=kind, input=HELLO, max_output_tokens=16, temperature=0)
    second = client.responses.create(
        model=kind, input="And again.", previous_response_id=first.id, max_output_tokens=16, temperature=0
    )
    assert second.output_text.strip() and second.usage.input_tokens > first.usage.input_tokens


def history():
    """Three turns that show the small model how the tool is used."""
    turns = []
    for number, city in enumerate(["Paris", "Rome", "Oslo"]):
        call = {"call_id": f"call_{number}", "name": "get_weather", "arguments": json.dumps({"city": city})}
        turns += [
            {"role": "user", "content": f"What is the weather in {city}?"},
            {"type": "function_call", **call},
            {"type": "function_call_output", "call_id": f"call_{number}", "output": "sunny"},
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                # The server does not know an assistant's text that is not in parts.
                "content": [{"type": "output_text", "text": f"It is sunny in {city}.", "annotations": []}],
            },
        ]
    return [*turns, {"role": "user", "content": "What is the weather in Lima?"}]


@every_kind
def test_the_responses_stream_helper_reads_the_real_models_tool_call(client, kind):
    tools = [{"type": "function", "name": "get_weather", "description": "Weather", "parameters": CITY, "strict": True}]
    with client.responses.stream(
        model=kind, input=history(), tools=tools, max_output_tokens=64, temperature=0, store=False
    ) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    [call] = [item for item in final.output if item.type == "function_call"]
    assert call.name == "get_weather" and json.loads(call.arguments).keys() == {"city"}
    assert kinds.count("response.function_call_arguments.done") == 1


@every_kind
def test_the_chat_stream_helper_reads_the_real_model(client, kind):
    with client.chat.completions.stream(model=kind, messages=user(HELLO), max_tokens=16, temperature=0) as stream:
        for event in stream:
            if event.type == "chunk":
                [choice] = event.snapshot.choices
    assert choice.message.content.strip() and choice.finish_reason in ("stop", "length")


@every_kind
def test_the_messages_stream_helper_reads_the_real_model(gateway, kind):
    with anthropic.Anthropic(base_url=gateway.url, api_key=Gateway.KEY, max_retries=0, timeout=120) as client:
        with client.messages.stream(model=kind, max_tokens=16, messages=user(HELLO)) as stream:
            final = stream.get_final_message()
    assert "".join(block.text for block in final.content).strip() and final.stop_reason in ("end_turn", "max_tokens")


@every_kind
def test_the_gemini_stream_reads_the_real_model(gateway, kind):
    client = genai.Client(api_key=Gateway.KEY, http_options=types.HttpOptions(base_url=gateway.url, timeout=120_000))
    config = {"max_output_tokens": 16, "temperature": 0}
    chunks = list(client.models.generate_content_stream(model=kind, contents=HELLO, config=config))
    assert "".join(chunk.text or "" for chunk in chunks).strip()
    assert chunks[-1].candidates[0].finish_reason in (types.FinishReason.STOP, types.FinishReason.MAX_TOKENS)
    assert chunks[-1].usage_metadata.candidates_token_count >= 1
