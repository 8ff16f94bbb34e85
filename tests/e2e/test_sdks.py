"""The official SDKs of Chat Completions and Messages against every pair: each over each upstream dialect.

Run once for each installed set of majors (see requirements/). What the lab upstream says is in sdk_scene.py. The Responses API
and google-genai are in test_sdks_responses.py and test_sdks_gemini.py.
"""

import asyncio
import base64
import json

import anthropic
import openai
import pytest

from processes import Gateway, request
from sdk_scene import (
    ANSWER,
    ANSWER_TOKENS,
    CITY,
    CUT,
    LAB_MODEL,
    LIMIT,
    LONG,
    PROMPT_TOKENS,
    ROUTES,
    SAID,
    Person,
    user,
)

CHAT_TOOLS = [
    {"type": "function", "function": {"name": name, "description": "About a city", "parameters": CITY}}
    for name in ("get_weather", "get_time")
]
MESSAGES_TOOLS = [
    {"name": name, "description": "About a city", "input_schema": CITY} for name in ("get_weather", "get_time")
]


@pytest.fixture(scope="module")
def chat(gateway):
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=Gateway.KEY, max_retries=0, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def messages(gateway):
    with anthropic.Anthropic(base_url=gateway.url, api_key=Gateway.KEY, max_retries=0, timeout=30) as client:
        yield client


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


# --- the Chat client -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ROUTES)
def test_a_chat_client_gets_a_whole_answer_with_its_usage_and_headers(chat, route):
    raw = chat.chat.completions.with_raw_response.create(model=route, messages=user(SAID))
    answer = raw.parse()
    [choice] = answer.choices
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", ANSWER, "stop")
    assert (answer.object, answer.model) == ("chat.completion", LAB_MODEL)
    usage = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (PROMPT_TOKENS, ANSWER_TOKENS)
    assert usage.total_tokens == PROMPT_TOKENS + ANSWER_TOKENS
    assert raw.headers["x-turnkeep-turn"] and raw.headers["x-request-id"] == raw.headers["x-turnkeep-turn"]
    assert raw.headers["x-turnkeep-model"] == LAB_MODEL


@pytest.mark.parametrize("route", ROUTES)
def test_a_chat_client_that_iterates_a_stream_gets_the_text_and_asked_for_usage(chat, route):
    stream = chat.chat.completions.create(
        model=route, messages=user(SAID), stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == ANSWER
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert len({chunk.id for chunk in chunks}) == 1
    assert sum(1 for chunk in chunks if chunk.choices and chunk.choices[0].delta.content) > 3
    [counted] = [chunk.usage for chunk in chunks if chunk.usage]
    assert (counted.prompt_tokens, counted.completion_tokens) == (PROMPT_TOKENS, ANSWER_TOKENS)
    assert chunks[-1].choices == []


@pytest.mark.parametrize("route", ROUTES)
def test_a_chat_client_that_did_not_ask_for_usage_in_a_stream_gets_none(chat, route):
    chunks = list(chat.chat.completions.create(model=route, messages=user(SAID), stream=True))
    assert all(chunk.choices and not chunk.usage for chunk in chunks)


@pytest.mark.parametrize("route", ROUTES)
def test_the_chat_stream_helper_accumulates_a_completion(chat, route):
    with chat.chat.completions.stream(
        model=route, messages=user(SAID), stream_options={"include_usage": True}
    ) as stream:
        seen = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "content.delta" in seen and "content.done" in seen
    assert final.choices[0].message.content == ANSWER
    assert final.usage.completion_tokens == ANSWER_TOKENS


@pytest.mark.parametrize("route", ROUTES)
def test_a_chat_client_goes_through_a_tool_loop_with_parallel_calls(chat, route):
    history = user("please call get_weather and call get_time")
    first = chat.chat.completions.create(model=route, messages=history, tools=CHAT_TOOLS)
    [choice] = first.choices
    assert choice.finish_reason == "tool_calls"
    calls = choice.message.tool_calls
    assert [call.function.name for call in calls] == ["get_weather", "get_time"]
    assert [json.loads(call.function.arguments) for call in calls] == [{"city": "lab"}] * 2
    assert len({call.id for call in calls}) == 2
    history.append(choice.message.model_dump(exclude_none=True))
    for call, result in zip(calls, ("rain", "noon")):
        history.append({"role": "tool", "tool_call_id": call.id, "content": result})
    second = chat.chat.completions.create(model=route, messages=history, tools=CHAT_TOOLS)
    assert second.choices[0].finish_reason == "stop"
    said = second.choices[0].message.content
    assert 'get_weather returned: "rain"' in said and 'get_time returned: "noon"' in said


@pytest.mark.parametrize("route", ROUTES)
def test_the_chat_stream_helper_assembles_tool_calls(chat, route):
    with chat.chat.completions.stream(
        model=route, messages=user("call get_time and call get_weather"), tools=CHAT_TOOLS
    ) as stream:
        final = stream.get_final_completion()
    calls = final.choices[0].message.tool_calls
    assert [(call.function.name, json.loads(call.function.arguments)) for call in calls] == [
        ("get_time", {"city": "lab"}),
        ("get_weather", {"city": "lab"}),
    ]
    assert final.choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize("route", ROUTES)
def test_a_chat_client_can_force_a_tool(chat, route):
    forced = {"type": "function", "function": {"name": "get_time"}}
    answer = chat.chat.completions.create(model=route, messages=user(SAID), tools=CHAT_TOOLS, tool_choice=forced)
    assert [call.function.name for call in answer.choices[0].message.tool_calls] == ["get_time"]


@pytest.mark.parametrize("route", ROUTES)
def test_the_chat_parse_helper_gets_its_structured_output(chat, route):
    answer = chat.chat.completions.parse(model=route, messages=user("a person"), response_format=Person)
    assert answer.choices[0].message.parsed == Person(name="lab", age=1)


@pytest.mark.parametrize("route", ROUTES)
def test_a_chat_client_sees_a_length_stop(chat, route):
    answer = chat.chat.completions.create(model=route, messages=user(LONG), max_completion_tokens=LIMIT)
    assert answer.choices[0].finish_reason == "length"
    assert answer.choices[0].message.content.split() == CUT
    assert answer.usage.completion_tokens == LIMIT


@pytest.mark.parametrize("route", ROUTES)
def test_a_chat_client_sees_a_stop_sequence_as_a_stop(chat, route):
    raw = chat.chat.completions.with_raw_response.create(model=route, messages=user(SAID), stop=["the lab"])
    answer = raw.parse()
    assert answer.choices[0].finish_reason == "stop"
    # The Responses API has no stop sequences, and the gateway says so.
    assert ("stop" in raw.headers.get("x-turnkeep-dropped", "")) == (route == "via-responses")
    expected = ANSWER if route == "via-responses" else ANSWER.split("the lab")[0]
    assert answer.choices[0].message.content == expected


@pytest.mark.parametrize("route", ROUTES)
def test_a_system_message_and_several_turns_from_a_chat_client_all_count(chat, route):
    history = [{"role": "system", "content": "be brief"}, *user("one two"), {"role": "assistant", "content": "three"}]
    answer = chat.chat.completions.create(model=route, messages=[*history, *user(SAID)])
    assert answer.choices[0].message.content == ANSWER
    assert answer.usage.prompt_tokens == 5 + PROMPT_TOKENS


@pytest.mark.parametrize("route", ROUTES)
def test_an_async_chat_client_streams_several_turns_at_once(gateway, route):
    async def one(client, text):
        stream = await client.chat.completions.create(model=route, messages=user(text), stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

    async def all_of_them():
        async with openai.AsyncOpenAI(
            base_url=f"{gateway.url}/v1", api_key=Gateway.KEY, max_retries=0, timeout=30
        ) as client:
            return await asyncio.gather(*(one(client, f"number {n}") for n in range(8)))

    answers = asyncio.run(all_of_them())
    assert all(f'You said: "number {n}".' in answer for n, answer in enumerate(answers))


def test_a_chat_client_lists_the_models(chat):
    assert {model.id for model in chat.models.list()} == set(ROUTES)
    assert chat.models.retrieve("via-chat").id == "via-chat"


def test_a_chat_client_that_names_an_unknown_model_gets_a_not_found_error_with_near_names(chat):
    with pytest.raises(openai.NotFoundError) as caught:
        chat.chat.completions.create(model="via-chatt", messages=user(SAID))
    assert caught.value.code == "model_not_found"
    assert "via-chat" in caught.value.body["message"]


def test_a_chat_client_with_a_wrong_key_gets_an_authentication_error(chat):
    with pytest.raises(openai.AuthenticationError):
        chat.with_options(api_key="wrong").chat.completions.create(model="via-chat", messages=user(SAID))


@pytest.mark.parametrize("route", ROUTES)
def test_a_chat_client_with_a_bad_field_gets_a_bad_request_error_that_names_it(chat, route):
    with pytest.raises(openai.BadRequestError) as caught:
        chat.chat.completions.create(model=route, messages=user(SAID), extra_body={"messages": "text"})
    assert "messages" in caught.value.body["message"]
    assert caught.value.type == "invalid_request_error"


# --- the Messages client ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ROUTES)
def test_a_messages_client_gets_a_whole_answer_with_its_usage_and_headers(messages, route):
    raw = messages.messages.with_raw_response.create(model=route, max_tokens=100, messages=user(SAID))
    answer = raw.parse()
    assert (answer.type, answer.role, answer.stop_reason) == ("message", "assistant", "end_turn")
    assert (text_of(answer), answer.model) == (ANSWER, LAB_MODEL)
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (PROMPT_TOKENS, ANSWER_TOKENS)
    assert raw.headers["x-turnkeep-turn"] and raw.headers["request-id"] == raw.headers["x-turnkeep-turn"]
    assert raw.headers["x-turnkeep-model"] == LAB_MODEL


@pytest.mark.parametrize("route", ROUTES)
def test_a_messages_client_that_iterates_a_stream_gets_events_in_legal_order(messages, route):
    with messages.messages.create(model=route, max_tokens=100, messages=user(SAID), stream=True) as stream:
        events = [event for event in stream if event.type != "ping"]
    kinds = [event.type for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(kinds[2:-3]) == {"content_block_delta"} and len(kinds) > 8
    assert events[-2].delta.stop_reason == "end_turn"
    assert events[-2].usage.output_tokens == ANSWER_TOKENS


@pytest.mark.parametrize("route", ROUTES)
def test_the_messages_stream_helper_accumulates_a_message(messages, route):
    with messages.messages.stream(model=route, max_tokens=100, messages=user(SAID)) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == text_of(final) == ANSWER
    assert (final.stop_reason, final.usage.output_tokens) == ("end_turn", ANSWER_TOKENS)


@pytest.mark.parametrize("route", ROUTES)
def test_a_messages_client_goes_through_a_tool_loop_with_parallel_calls(messages, route):
    history = user("please call get_weather and call get_time")
    first = messages.messages.create(model=route, max_tokens=100, messages=history, tools=MESSAGES_TOOLS)
    assert first.stop_reason == "tool_use"
    calls = [block for block in first.content if block.type == "tool_use"]
    assert [(call.name, call.input) for call in calls] == [("get_weather", {"city": "lab"}), ("get_time", {"city": "lab"})]
    assert len({call.id for call in calls}) == 2
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in zip(calls, ("rain", "noon"))
    ]
    history += [{"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
    second = messages.messages.create(model=route, max_tokens=100, messages=history, tools=MESSAGES_TOOLS)
    assert second.stop_reason == "end_turn"
    said = text_of(second)
    assert 'get_weather returned: "rain"' in said and 'get_time returned: "noon"' in said


@pytest.mark.parametrize("route", ROUTES)
def test_the_messages_stream_helper_assembles_tool_calls(messages, route):
    with messages.messages.stream(
        model=route, max_tokens=100, messages=user("call get_time and call get_weather"), tools=MESSAGES_TOOLS
    ) as stream:
        final = stream.get_final_message()
    calls = [block for block in final.content if block.type == "tool_use"]
    assert [(call.name, call.input) for call in calls] == [("get_time", {"city": "lab"}), ("get_weather", {"city": "lab"})]
    assert final.stop_reason == "tool_use"


@pytest.mark.parametrize("route", ROUTES)
def test_a_messages_client_can_force_a_tool(messages, route):
    answer = messages.messages.create(
        model=route,
        max_tokens=100,
        messages=user(SAID),
        tools=MESSAGES_TOOLS,
        tool_choice={"type": "tool", "name": "get_time"},
    )
    assert [block.name for block in answer.content if block.type == "tool_use"] == ["get_time"]


@pytest.mark.parametrize("route", ROUTES)
def test_the_messages_parse_helper_gets_its_structured_output(messages, route):
    answer = messages.messages.parse(model=route, max_tokens=100, messages=user("a person"), output_format=Person)
    assert answer.parsed_output == Person(name="lab", age=1)


@pytest.mark.parametrize("route", ROUTES)
def test_a_messages_client_sees_a_length_stop(messages, route):
    answer = messages.messages.create(model=route, max_tokens=LIMIT, messages=user(LONG))
    assert answer.stop_reason == "max_tokens"
    assert text_of(answer).split() == CUT


@pytest.mark.parametrize("route", ROUTES)
def test_a_messages_client_sees_a_stop_sequence(messages, route):
    raw = messages.messages.with_raw_response.create(
        model=route, max_tokens=100, messages=user(SAID), stop_sequences=["the lab"]
    )
    answer = raw.parse()
    # No other upstream tells an end of turn from a stop sequence, and the Responses API has none.
    expected = ("stop_sequence", "the lab") if route == "via-messages" else ("end_turn", None)
    assert (answer.stop_reason, answer.stop_sequence) == expected
    assert ("stop" in raw.headers.get("x-turnkeep-dropped", "")) == (route == "via-responses")
    assert text_of(answer) == (ANSWER if route == "via-responses" else ANSWER.split("the lab")[0])


@pytest.mark.parametrize("route", ROUTES)
def test_a_system_prompt_and_several_turns_from_a_messages_client_all_count(messages, route):
    history = [*user("one two"), {"role": "assistant", "content": "three"}, *user(SAID)]
    answer = messages.messages.create(model=route, max_tokens=100, system="be brief", messages=history)
    assert text_of(answer) == ANSWER
    assert answer.usage.input_tokens == 5 + PROMPT_TOKENS


def test_a_thinking_block_comes_back_with_its_signature_and_may_be_sent_again(messages):
    thinking = {"type": "enabled", "budget_tokens": 1024}
    history = user(SAID)
    first = messages.messages.create(model="via-messages", max_tokens=2000, messages=history, thinking=thinking)
    [thought, text] = first.content
    assert thought.type == "thinking" and thought.signature and text.text == ANSWER
    history += [{"role": "assistant", "content": first.content}, *user(SAID)]
    second = messages.messages.create(model="via-messages", max_tokens=2000, messages=history, thinking=thinking)
    assert text_of(second) == ANSWER


@pytest.mark.parametrize("route", ["via-responses", "via-gemini"])
def test_another_upstreams_proof_of_thinking_comes_back_to_it(messages, lab, route):
    more = {"max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1024}, "tools": MESSAGES_TOOLS}
    history = user("call get_weather")
    first = messages.messages.create(model=route, messages=history, **more)
    [call] = [block for block in first.content if block.type == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "rain"}
    history += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    # Another prompt is another conversation, so that an upstream which keeps its answers is sent all of it too.
    second = messages.messages.create(model=route, messages=history, system="Be brief.", **more)
    assert 'get_weather returned: "rain"' in text_of(second)
    sent = request(lab.url, "GET", "/lab/requests").json()[-1]["body"]
    proofs = (
        [item["encrypted_content"] for item in sent["input"] if item["type"] == "reasoning"]
        if route == "via-responses"
        else [part["thoughtSignature"] for part in sent["contents"][1]["parts"] if "thoughtSignature" in part]
    )
    # The upstream's own, as it was, and without the gateway's mark.
    assert len(proofs) == 1 and base64.b64decode(proofs[0]).startswith(b"turnkeep-lab")


@pytest.mark.parametrize("route", ROUTES)
def test_an_async_messages_client_streams_several_turns_at_once(gateway, route):
    async def one(client, text):
        async with client.messages.stream(model=route, max_tokens=100, messages=user(text)) as stream:
            return await stream.get_final_text()

    async def all_of_them():
        async with anthropic.AsyncAnthropic(
            base_url=gateway.url, api_key=Gateway.KEY, max_retries=0, timeout=30
        ) as client:
            return await asyncio.gather(*(one(client, f"number {n}") for n in range(8)))

    answers = asyncio.run(all_of_them())
    assert all(f'You said: "number {n}".' in answer for n, answer in enumerate(answers))


@pytest.mark.parametrize("route", ROUTES)
def test_a_messages_client_counts_tokens(messages, route):
    counted = messages.messages.count_tokens(model=route, messages=user(SAID))
    assert counted.input_tokens >= 1


def test_a_messages_client_lists_the_models(messages):
    assert {model.id for model in messages.models.list()} == set(ROUTES)
    found = messages.models.retrieve("via-messages")
    assert (found.id, found.type) == ("via-messages", "model")


def test_a_messages_client_that_names_an_unknown_model_gets_a_not_found_error_with_near_names(messages):
    with pytest.raises(anthropic.NotFoundError) as caught:
        messages.messages.create(model="via-message", max_tokens=10, messages=user(SAID))
    assert caught.value.body["error"]["type"] == "not_found_error"
    assert "via-messages" in caught.value.body["error"]["message"]


def test_a_messages_client_with_a_wrong_key_gets_an_authentication_error(messages):
    with pytest.raises(anthropic.AuthenticationError):
        messages.with_options(api_key="wrong").messages.create(model="via-chat", max_tokens=10, messages=user(SAID))


@pytest.mark.parametrize("route", ROUTES)
def test_a_messages_client_with_a_bad_field_gets_a_bad_request_error_that_names_it(messages, route):
    with pytest.raises(anthropic.BadRequestError) as caught:
        messages.messages.create(model=route, max_tokens=10, messages=user(SAID), extra_body={"messages": "text"})
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    assert "messages" in caught.value.body["error"]["message"]
