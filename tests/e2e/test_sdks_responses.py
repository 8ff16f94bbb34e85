"""The OpenAI SDK's Responses API over every upstream dialect: whole, streamed, with tools, stored, chained and in the background.

Run once for each installed set of majors (see requirements/). What the lab upstream says is in sdk_scene.py.
"""

import asyncio
import json

import openai
import pytest

from processes import Gateway, request, until
from sdk_scene import ANSWER, ANSWER_TOKENS, CITY, CUT, LAB_MODEL, LIMIT, LONG, PROMPT_TOKENS, ROUTES, SAID, Person

every_route = pytest.mark.parametrize("route", ROUTES)
TOOLS = [
    {"type": "function", "name": name, "description": "About a city", "parameters": CITY, "strict": True}
    for name in ("get_weather", "get_time")
]


@pytest.fixture(scope="module")
def client(gateway):
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=Gateway.KEY, max_retries=0, timeout=30) as client:
        yield client


def calls_of(response):
    return [item for item in response.output if item.type == "function_call"]


@every_route
def test_a_responses_client_gets_a_whole_answer_with_its_usage_and_headers(client, route):
    raw = client.responses.with_raw_response.create(model=route, input=SAID)
    answer = raw.parse()
    assert (answer.object, answer.status, answer.output_text, answer.model) == ("response", "completed", ANSWER, LAB_MODEL)
    assert answer.id.startswith("resp_") and answer.error is None and answer.incomplete_details is None
    usage = answer.usage
    assert (usage.input_tokens, usage.output_tokens) == (PROMPT_TOKENS, ANSWER_TOKENS)
    assert usage.total_tokens == PROMPT_TOKENS + ANSWER_TOKENS
    assert usage.input_tokens_details is not None and usage.output_tokens_details is not None
    assert raw.headers["x-turnkeep-turn"] and raw.headers["x-request-id"] == raw.headers["x-turnkeep-turn"]


@every_route
def test_a_responses_client_that_iterates_a_stream_gets_events_in_legal_order(client, route):
    events = list(client.responses.create(model=route, input=SAID, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"] and kinds[-1] == "response.completed"
    assert kinds.count("response.output_item.added") == kinds.count("response.output_item.done") == 1
    assert kinds.count("response.content_part.added") == kinds.count("response.content_part.done") == 1
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(deltas) > 4 and "".join(deltas) == ANSWER
    final = events[-1].response
    assert final.id == events[0].response.id and final.output_text == ANSWER
    assert final.usage.output_tokens == ANSWER_TOKENS


@every_route
def test_the_responses_stream_helper_accumulates_a_response(client, route):
    with client.responses.stream(model=route, input=SAID) as stream:
        seen = [event.type for event in stream]
        final = stream.get_final_response()
    assert "response.output_text.delta" in seen and seen[-1] == "response.completed"
    assert (final.output_text, final.status, final.usage.output_tokens) == (ANSWER, "completed", ANSWER_TOKENS)


@every_route
def test_a_responses_client_goes_through_a_tool_loop_with_parallel_calls(client, route):
    history = [{"role": "user", "content": "please call get_weather and call get_time"}]
    first = client.responses.create(model=route, input=history, tools=TOOLS, store=False)
    calls = calls_of(first)
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [
        ("get_weather", {"city": "lab"}),
        ("get_time", {"city": "lab"}),
    ]
    assert len({call.call_id for call in calls}) == 2
    history += [item.model_dump(exclude_none=True) for item in first.output]
    for call, result in zip(calls, ("rain", "noon")):
        history.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    second = client.responses.create(model=route, input=history, tools=TOOLS, store=False)
    assert second.status == "completed"
    assert 'get_weather returned: "rain"' in second.output_text and 'get_time returned: "noon"' in second.output_text


@every_route
def test_the_responses_stream_helper_assembles_tool_calls(client, route):
    with client.responses.stream(model=route, input="call get_time and call get_weather", tools=TOOLS) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert [(call.name, json.loads(call.arguments)) for call in calls_of(final)] == [
        ("get_time", {"city": "lab"}),
        ("get_weather", {"city": "lab"}),
    ]
    assert kinds.count("response.function_call_arguments.done") == 2


@every_route
def test_a_responses_client_can_force_a_tool(client, route):
    forced = {"type": "function", "name": "get_time"}
    answer = client.responses.create(model=route, input=SAID, tools=TOOLS, tool_choice=forced)
    assert [call.name for call in calls_of(answer)] == ["get_time"]


@every_route
def test_a_free_text_tool_is_called_with_text_and_takes_its_result(client, route):
    tools = [{"type": "custom", "name": "note", "description": "Takes a note"}]
    history = [{"role": "user", "content": "call note"}]
    first = client.responses.create(model=route, input=history, tools=tools, store=False)
    [call] = [item for item in first.output if item.type == "custom_tool_call"]
    assert call.name == "note" and isinstance(call.input, str)
    history += [item.model_dump(exclude_none=True) for item in first.output]
    history.append({"type": "custom_tool_call_output", "call_id": call.call_id, "output": "taken"})
    second = client.responses.create(model=route, input=history, tools=tools, store=False)
    assert 'note returned: "taken"' in second.output_text


@every_route
def test_the_responses_parse_helper_gets_its_structured_output(client, route):
    answer = client.responses.parse(model=route, input="a person", text_format=Person)
    assert answer.output_parsed == Person(name="lab", age=1)


@every_route
def test_a_responses_client_sees_an_answer_cut_by_its_token_limit_as_incomplete(client, route):
    answer = client.responses.create(model=route, input=LONG, max_output_tokens=LIMIT)
    assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert answer.output_text.split() == CUT
    events = list(client.responses.create(model=route, input=LONG, max_output_tokens=LIMIT, stream=True))
    assert events[-1].type == "response.incomplete"
    assert events[-1].response.incomplete_details.reason == "max_output_tokens"


@every_route
def test_instructions_and_several_turns_from_a_responses_client_all_count(client, route):
    history = [
        {"role": "user", "content": "one two"},
        {"role": "assistant", "content": "three"},
        {"role": "user", "content": [{"type": "input_text", "text": SAID}]},
    ]
    answer = client.responses.create(model=route, instructions="be brief", input=history)
    assert answer.output_text == ANSWER
    assert answer.usage.input_tokens == 5 + PROMPT_TOKENS


def test_reasoning_comes_back_with_its_encrypted_content_and_may_be_sent_again(client):
    more = {"reasoning": {"effort": "low", "summary": "auto"}, "include": ["reasoning.encrypted_content"], "store": False}
    history = [{"role": "user", "content": SAID}]
    first = client.responses.create(model="via-responses", input=history, **more)
    reasoning, message = first.output
    assert reasoning.type == "reasoning" and reasoning.encrypted_content and message.type == "message"
    history += [item.model_dump(exclude_none=True) for item in first.output]
    history.append({"role": "user", "content": SAID})
    assert client.responses.create(model="via-responses", input=history, **more).output_text == ANSWER


@every_route
def test_an_async_responses_client_streams_several_turns_at_once(gateway, route):
    async def one(client, text):
        async with client.responses.stream(model=route, input=text) as stream:
            return (await stream.get_final_response()).output_text

    async def all_of_them():
        async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=Gateway.KEY, max_retries=0, timeout=30) as client:
            return await asyncio.gather(*(one(client, f"number {n}") for n in range(8)))

    answers = asyncio.run(all_of_them())
    assert all(f'You said: "number {n}".' in answer for n, answer in enumerate(answers))


# --- what is stored --------------------------------------------------------------------------------------------------


@every_route
def test_a_turn_goes_on_from_the_one_before_by_its_id(client, route):
    first = client.responses.create(model=route, input="one two")
    second = client.responses.create(model=route, input=SAID, previous_response_id=first.id)
    assert second.output_text == ANSWER and second.previous_response_id == first.id
    # An upstream that keeps its answers counts each one's id and status as words.
    kept = 2 if route == "via-responses" else 0
    assert second.usage.input_tokens == 2 + len(first.output_text.split()) + kept + PROMPT_TOKENS
    with client.responses.stream(model=route, input=SAID, previous_response_id=second.id) as stream:
        third = stream.get_final_response()
    assert third.usage.input_tokens == second.usage.input_tokens + ANSWER_TOKENS + kept + PROMPT_TOKENS


@every_route
def test_a_tool_loop_goes_on_by_the_id_and_sends_only_the_result(client, route):
    first = client.responses.create(model=route, input="call get_weather", tools=TOOLS)
    [call] = calls_of(first)
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
    second = client.responses.create(model=route, input=[result], tools=TOOLS, previous_response_id=first.id)
    assert 'get_weather returned: "rain"' in second.output_text


@every_route
def test_a_stored_response_is_found_with_its_input_until_it_is_deleted(client, route):
    made = client.responses.create(model=route, input=SAID)
    found = client.responses.retrieve(made.id)
    assert (found.id, found.status, found.output_text) == (made.id, "completed", ANSWER)
    [item] = client.responses.input_items.list(made.id).data
    assert (item.role, item.content[0].type, item.content[0].text) == ("user", "input_text", SAID)
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)
    with pytest.raises((openai.NotFoundError, openai.BadRequestError)):
        client.responses.create(model=route, input=SAID, previous_response_id=made.id)


@every_route
def test_what_was_not_to_be_stored_is_not_found(client, route):
    made = client.responses.create(model=route, input=SAID, store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)


@every_route
def test_a_background_response_is_made_without_its_client_and_followed_from_any_event_on(client, route):
    queued = client.responses.create(model=route, input=SAID, background=True)
    assert queued.status in ("queued", "in_progress", "completed")
    until(lambda: client.responses.retrieve(queued.id).status == "completed", "the background response is complete", seconds=20)
    assert client.responses.retrieve(queued.id).output_text == ANSWER
    events = list(client.responses.retrieve(queued.id, stream=True))
    assert events[-1].type == "response.completed" and events[-1].response.output_text == ANSWER
    rest = list(client.responses.retrieve(queued.id, stream=True, starting_after=2))
    assert [event.sequence_number for event in rest] == [event.sequence_number for event in events][3:]


@every_route
def test_a_background_stream_that_was_left_is_taken_up_where_it_was(client, route):
    seen = []
    with client.responses.create(model=route, input=SAID, background=True, stream=True) as stream:
        for event in stream:
            seen.append(event)
            if event.type == "response.output_text.delta":
                break
    response_id = seen[0].response.id
    seen += client.responses.retrieve(response_id, stream=True, starting_after=seen[-1].sequence_number)
    assert [event.sequence_number for event in seen] == list(range(len(seen)))
    assert "".join(event.delta for event in seen if event.type == "response.output_text.delta") == ANSWER
    assert seen[-1].type == "response.completed"


# --- what is refused -------------------------------------------------------------------------------------------------


def test_a_responses_client_that_names_an_unknown_model_gets_a_not_found_error_with_near_names(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.responses.create(model="via-responsess", input=SAID)
    assert caught.value.code == "model_not_found"
    assert "via-responses" in caught.value.body["message"]


def test_a_responses_client_with_a_wrong_key_gets_an_authentication_error(client):
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").responses.create(model="via-chat", input=SAID)


@every_route
@pytest.mark.parametrize("field, value", [("input", 5), ("tools", "text"), ("max_output_tokens", "many"), ("text", [])])
def test_a_responses_client_with_a_bad_field_gets_a_bad_request_error_that_names_it(client, route, field, value):
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=route, input=SAID, extra_body={field: value})
    assert field in caught.value.body["message"]
    assert caught.value.type == "invalid_request_error"


def test_an_unknown_response_id_is_not_found(client):
    for ask in (client.responses.retrieve, client.responses.delete, client.responses.cancel):
        with pytest.raises(openai.NotFoundError):
            ask("resp_0123456789abcdef0123456789abcdef")


def test_an_upgrade_to_a_websocket_is_answered_with_426(gateway):
    headers = [
        ("authorization", f"Bearer {Gateway.KEY}"), ("connection", "Upgrade"), ("upgrade", "websocket"),
        ("sec-websocket-version", "13"), ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ]
    assert request(gateway.url, "GET", "/v1/responses", headers=headers).status == 426
