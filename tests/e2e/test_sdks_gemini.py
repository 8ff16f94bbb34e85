"""google-genai over every upstream dialect: whole, streamed, with tools that it calls itself, counted and refused.

Run once for each installed set of majors (see requirements/): the newest asks under /v1, the older ones under /v1beta. What the
lab upstream says is in sdk_scene.py.
"""

import asyncio
import base64

import pytest
from google import genai
from google.genai import errors, types

from processes import Gateway, request
from sdk_scene import ANSWER, ANSWER_TOKENS, CITY, CUT, LAB_MODEL, LIMIT, LONG, PROMPT_TOKENS, ROUTES, SAID, Person

every_route = pytest.mark.parametrize("route", ROUTES)


def client_of(gateway, key=Gateway.KEY):
    return genai.Client(api_key=key, http_options=types.HttpOptions(base_url=gateway.url, timeout=30_000))


@pytest.fixture(scope="module")
def client(gateway):
    return client_of(gateway)


def declared(*names):
    functions = [
        types.FunctionDeclaration(name=name, description="About a city", parameters_json_schema=CITY) for name in names
    ]
    return types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=functions)],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )


@every_route
def test_a_gemini_client_gets_a_whole_answer_with_its_usage_and_headers(client, route):
    answer = client.models.generate_content(model=route, contents=SAID)
    [candidate] = answer.candidates
    assert (answer.text, candidate.content.role, candidate.finish_reason) == (ANSWER, "model", types.FinishReason.STOP)
    assert answer.model_version == LAB_MODEL and answer.response_id
    usage = answer.usage_metadata
    assert (usage.prompt_token_count, usage.candidates_token_count) == (PROMPT_TOKENS, ANSWER_TOKENS)
    assert usage.total_token_count == PROMPT_TOKENS + ANSWER_TOKENS
    headers = {name.lower(): value for name, value in answer.sdk_http_response.headers.items()}
    assert headers["x-turnkeep-turn"] and headers["x-turnkeep-model"] == LAB_MODEL


@every_route
def test_a_gemini_client_that_iterates_a_stream_gets_the_text_and_its_usage(client, route):
    chunks = list(client.models.generate_content_stream(model=route, contents=SAID))
    assert len(chunks) > 4
    assert "".join(chunk.text or "" for chunk in chunks) == ANSWER
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP
    assert chunks[-1].usage_metadata.candidates_token_count == ANSWER_TOKENS
    assert len({chunk.response_id for chunk in chunks}) == 1


@every_route
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_gemini_client_goes_through_a_tool_loop_with_parallel_calls(client, route, streamed):
    config = declared("get_weather", "get_time")
    contents = [types.UserContent("please call get_weather and call get_time")]
    if streamed:
        parts = []
        for chunk in client.models.generate_content_stream(model=route, contents=contents, config=config):
            parts += chunk.candidates[0].content.parts or [] if chunk.candidates[0].content else []
        content = types.ModelContent(parts)
    else:
        content = client.models.generate_content(model=route, contents=contents, config=config).candidates[0].content
    calls = [part.function_call for part in content.parts if part.function_call]
    assert [(call.name, call.args) for call in calls] == [("get_weather", {"city": "lab"}), ("get_time", {"city": "lab"})]
    results = [
        types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": text}))
        for call, text in zip(calls, ("rain", "noon"))
    ]
    answer = client.models.generate_content(model=route, contents=[*contents, content, types.UserContent(results)], config=config)
    assert 'get_weather returned: "rain"' in answer.text and 'get_time returned: "noon"' in answer.text


@every_route
def test_a_gemini_client_calls_a_python_function_by_itself(client, route):
    asked = []

    def get_weather(city: str) -> str:
        """The weather of a city."""
        asked.append(city)
        return "rain"

    config = types.GenerateContentConfig(tools=[get_weather])
    answer = client.models.generate_content(model=route, contents="call get_weather", config=config)
    assert asked == ["lab"] and "get_weather returned" in answer.text and "rain" in answer.text


@every_route
def test_a_gemini_client_can_force_a_tool(client, route):
    config = declared("get_weather", "get_time")
    forced = types.FunctionCallingConfig(mode="ANY", allowed_function_names=["get_time"])
    config.tool_config = types.ToolConfig(function_calling_config=forced)
    answer = client.models.generate_content(model=route, contents=SAID, config=config)
    assert [call.name for call in answer.function_calls] == ["get_time"]


@every_route
@pytest.mark.parametrize("form", ["response_schema", "response_json_schema"])
def test_a_gemini_client_gets_its_structured_output_by_either_form_of_schema(client, route, form):
    schema = Person if form == "response_schema" else Person.model_json_schema()
    config = {"response_mime_type": "application/json", form: schema}
    answer = client.models.generate_content(model=route, contents="a person", config=config)
    assert Person.model_validate_json(answer.text) == Person(name="lab", age=1)
    if form == "response_schema":
        assert answer.parsed == Person(name="lab", age=1)


@every_route
def test_a_gemini_client_sees_a_length_stop(client, route):
    answer = client.models.generate_content(model=route, contents=LONG, config={"max_output_tokens": LIMIT})
    assert answer.candidates[0].finish_reason == types.FinishReason.MAX_TOKENS
    assert answer.text.split() == CUT


@every_route
def test_a_gemini_client_sees_a_stop_sequence_as_a_stop(client, route):
    answer = client.models.generate_content(model=route, contents=SAID, config={"stop_sequences": ["the lab"]})
    assert answer.candidates[0].finish_reason == types.FinishReason.STOP
    # The Responses API has no stop sequences.
    assert answer.text == (ANSWER if route == "via-responses" else ANSWER.split("the lab")[0])


@every_route
def test_a_system_instruction_and_several_turns_from_a_gemini_client_all_count(client, route):
    contents = [types.UserContent("one two"), types.ModelContent("three"), types.UserContent(SAID)]
    answer = client.models.generate_content(model=route, contents=contents, config={"system_instruction": "be brief"})
    assert answer.text == ANSWER
    assert answer.usage_metadata.prompt_token_count == 5 + PROMPT_TOKENS


@every_route
def test_a_gemini_chat_keeps_its_history(client, route):
    chat = client.chats.create(model=route)
    first = chat.send_message("one two")
    second = chat.send_message(SAID)
    assert second.text == ANSWER
    # An upstream that keeps its answers counts each one's id and status as words.
    kept = 2 if route == "via-responses" else 0
    assert second.usage_metadata.prompt_token_count == 2 + len(first.text.split()) + kept + PROMPT_TOKENS


def test_a_thought_signature_comes_back_and_may_be_sent_again(client):
    config = declared("get_weather")
    config.thinking_config = types.ThinkingConfig(include_thoughts=True)
    contents = [types.UserContent("call get_weather")]
    content = client.models.generate_content(model="via-gemini", contents=contents, config=config).candidates[0].content
    [call] = [part for part in content.parts if part.function_call]
    assert call.thought_signature
    result = types.FunctionResponse(id=call.function_call.id, name="get_weather", response={"output": "rain"})
    contents += [content, types.UserContent([types.Part(function_response=result)])]
    answer = client.models.generate_content(model="via-gemini", contents=contents, config=config)
    assert 'get_weather returned: "rain"' in answer.text


@pytest.mark.parametrize("route", ["via-responses", "via-messages"])
def test_another_upstreams_proof_of_thinking_comes_back_to_it(client, lab, route):
    config = types.GenerateContentConfig(
        thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_budget=1024), max_output_tokens=3000
    )
    contents = [types.UserContent(SAID)]
    content = client.models.generate_content(model=route, contents=contents, config=config).candidates[0].content
    assert [bool(part.thought_signature) for part in content.parts] == [True, False]
    contents += [content, types.UserContent(SAID)]
    # Another prompt is another conversation, so that an upstream which keeps its answers is sent all of it too.
    config.system_instruction = "Be brief."
    assert client.models.generate_content(model=route, contents=contents, config=config).text == ANSWER
    # The upstream refuses a proof that it has not made, so this is its own, as it was.
    sent = request(lab.url, "GET", "/lab/requests").json()[-1]["body"]
    proofs = (
        [item["encrypted_content"] for item in sent["input"] if item["type"] == "reasoning"]
        if route == "via-responses"
        else [block["signature"] for block in sent["messages"][1]["content"] if block["type"] == "thinking"]
    )
    assert len(proofs) == 1 and base64.b64decode(proofs[0]).startswith(b"turnkeep-lab")


@every_route
def test_an_async_gemini_client_streams_several_turns_at_once(gateway, route):
    async def one(client, text):
        stream = await client.aio.models.generate_content_stream(model=route, contents=text)
        return "".join([chunk.text or "" async for chunk in stream])

    async def all_of_them():
        client = client_of(gateway)
        return await asyncio.gather(*(one(client, f"number {n}") for n in range(8)))

    answers = asyncio.run(all_of_them())
    assert all(f'You said: "number {n}".' in answer for n, answer in enumerate(answers))


@every_route
def test_a_gemini_client_counts_tokens(client, route):
    assert client.models.count_tokens(model=route, contents=SAID).total_tokens >= 1


def test_a_gemini_client_lists_the_models(client):
    assert {model.name for model in client.models.list()} == {f"models/{route}" for route in ROUTES}
    assert client.models.get(model="via-gemini").name == "models/via-gemini"


def test_a_gemini_client_that_names_an_unknown_model_gets_a_not_found_error_with_near_names(client):
    with pytest.raises(errors.ClientError) as caught:
        client.models.generate_content(model="via-geminii", contents=SAID)
    assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")
    assert "via-gemini" in caught.value.message


def test_a_gemini_client_with_a_wrong_key_gets_an_authentication_error(gateway):
    client = client_of(gateway, "wrong")
    with pytest.raises(errors.ClientError) as caught:
        client.models.generate_content(model="via-gemini", contents=SAID)
    assert caught.value.code in (400, 401) and "key" in caught.value.message.lower()


@every_route
def test_a_gemini_client_with_a_bad_field_gets_a_bad_request_error_that_names_it(client, route):
    bad = types.HttpOptions(extra_body={"generationConfig": {"temperature": "hot"}})
    with pytest.raises(errors.ClientError) as caught:
        client.models.generate_content(model=route, contents=SAID, config={"http_options": bad})
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")
    assert "temperature" in caught.value.message
