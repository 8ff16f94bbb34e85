"""An upstream that others wrote (npm @copilotkit/aimock), under every kind: what it does otherwise than the vendors must not reach a client.

Its Responses events have no numbers, its Gemini streams end in a reason that Gemini does not have, its Messages count no
input. The official SDKs' streaming helpers have to take what the gateway makes of it, in the same dialect and in the others.
"""

import json
import pathlib
import shutil

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from processes import ROOT, Gateway, Process, environment
from sdk_scene import CITY, ROUTES, models, upstreams, user

JS = pathlib.Path(__file__).parent / "js"
INSTALLED = ROOT / ".setup" / "js" / "node_modules"
HELLO = "Hello from a mock that others wrote."
RAIN = "It rains in Paris."
every_route = pytest.mark.parametrize("route", ROUTES)


class Aimock(Process):
    """The mock on a port of its own choice."""

    def __init__(self, folder):
        assert INSTALLED.is_dir(), "the JavaScript packages are not installed: run tests/setup/install.sh"
        beside = pathlib.Path(folder) / "aimock"
        beside.mkdir()
        (beside / "node_modules").symlink_to(INSTALLED)
        shutil.copy(JS / "aimock.mjs", beside)
        super().__init__("aimock", ["node", beside / "aimock.mjs"], folder, env=environment(), read_line=True)
        self.url = self.line_with("listening on http://").split("listening on ", 1)[1].strip()


@pytest.fixture(scope="module")
def gateway(folder):
    with Aimock(folder) as mock, Gateway(folder, upstreams(mock.url), models("mock-model"), name="over-aimock") as gateway:
        yield gateway
        assert gateway.alive(), gateway.tail()
        assert mock.alive(), mock.tail()


@pytest.fixture(scope="module")
def openai_client(gateway):
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=Gateway.KEY, max_retries=0, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def anthropic_client(gateway):
    with anthropic.Anthropic(base_url=gateway.url, api_key=Gateway.KEY, max_retries=0, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def gemini_client(gateway):
    return genai.Client(api_key=Gateway.KEY, http_options=types.HttpOptions(base_url=gateway.url, timeout=30_000))


@every_route
def test_the_chat_stream_helper_takes_a_text(openai_client, route):
    with openai_client.chat.completions.stream(model=route, messages=user("say hello")) as stream:
        [choice] = stream.get_final_completion().choices
    assert (choice.message.content, choice.finish_reason) == (HELLO, "stop")


@every_route
def test_the_chat_stream_helper_takes_a_tool_loop(openai_client, route):
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": CITY}}]
    history = user("the weather")
    with openai_client.chat.completions.stream(model=route, messages=history, tools=tools) as stream:
        [choice] = stream.get_final_completion().choices
    [call] = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls" and call.function.name == "get_weather"
    assert json.loads(call.function.arguments) == {"city": "Paris"}
    told = {"id": call.id, "type": "function", "function": {"name": "get_weather", "arguments": call.function.arguments}}
    history += [
        {"role": "assistant", "content": None, "tool_calls": [told]},
        {"role": "tool", "tool_call_id": call.id, "content": "rain"},
    ]
    with openai_client.chat.completions.stream(model=route, messages=history, tools=tools) as stream:
        assert stream.get_final_completion().choices[0].message.content == RAIN


@every_route
def test_the_responses_stream_helper_takes_a_text(openai_client, route):
    with openai_client.responses.stream(model=route, input="say hello") as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert (final.output_text, final.status) == (HELLO, "completed")


@every_route
def test_the_responses_stream_helper_takes_a_tool_loop(openai_client, route):
    tools = [{"type": "function", "name": "get_weather", "parameters": CITY, "strict": True}]
    with openai_client.responses.stream(model=route, input="the weather", tools=tools) as stream:
        first = stream.get_final_response()
    [call] = [item for item in first.output if item.type == "function_call"]
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Paris"})
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
    with openai_client.responses.stream(model=route, input=[result], tools=tools, previous_response_id=first.id) as stream:
        assert stream.get_final_response().output_text == RAIN


@every_route
def test_the_messages_stream_helper_takes_a_text(anthropic_client, route):
    with anthropic_client.messages.stream(model=route, max_tokens=100, messages=user("say hello")) as stream:
        final = stream.get_final_message()
    text = "".join(block.text for block in final.content if block.type == "text")
    assert (text, final.stop_reason) == (HELLO, "end_turn")


@every_route
def test_the_messages_stream_helper_takes_a_tool_loop(anthropic_client, route):
    tools = [{"name": "get_weather", "input_schema": CITY}]
    history = user("the weather")
    with anthropic_client.messages.stream(model=route, max_tokens=100, messages=history, tools=tools) as stream:
        first = stream.get_final_message()
    [call] = [block for block in first.content if block.type == "tool_use"]
    assert (call.name, call.input, first.stop_reason) == ("get_weather", {"city": "Paris"}, "tool_use")
    told = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}
    history += [
        {"role": "assistant", "content": [told]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "rain"}]},
    ]
    with anthropic_client.messages.stream(model=route, max_tokens=100, messages=history, tools=tools) as stream:
        assert stream.get_final_text() == RAIN


@every_route
def test_the_gemini_stream_takes_a_text(gemini_client, route):
    chunks = list(gemini_client.models.generate_content_stream(model=route, contents="say hello"))
    assert "".join(chunk.text or "" for chunk in chunks) == HELLO
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP


@pytest.mark.filterwarnings("ignore:FUNCTION_CALL is not a valid FinishReason")
@every_route
def test_the_gemini_stream_takes_a_tool_loop(gemini_client, route):
    function = types.FunctionDeclaration(name="get_weather", parameters_json_schema=CITY)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[function])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    contents = [types.UserContent("the weather")]
    chunks = list(gemini_client.models.generate_content_stream(model=route, contents=contents, config=config))
    parts = [part for chunk in chunks if chunk.candidates[0].content for part in chunk.candidates[0].content.parts or []]
    [call] = [part.function_call for part in parts if part.function_call]
    assert (call.name, call.args) == ("get_weather", {"city": "Paris"})
    # What passes in its own dialect keeps its words, which the SDK takes with a warning; what is translated has Gemini's.
    reason = chunks[-1].candidates[0].finish_reason
    assert (reason == types.FinishReason.STOP) == (route != "via-gemini")
    result = types.FunctionResponse(id=call.id, name=call.name, response={"output": "rain"})
    contents += [types.ModelContent(parts), types.UserContent([types.Part(function_response=result)])]
    chunks = gemini_client.models.generate_content_stream(model=route, contents=contents, config=config)
    assert "".join(chunk.text or "" for chunk in chunks) == RAIN


@every_route
def test_a_thought_before_the_words_does_not_become_words(openai_client, anthropic_client, route):
    with openai_client.responses.stream(model=route, input="think first") as stream:
        assert stream.get_final_response().output_text == "Thought and said."
    with anthropic_client.messages.stream(model=route, max_tokens=100, messages=user("think first")) as stream:
        assert stream.get_final_text() == "Thought and said."


@every_route
def test_its_rate_limit_is_a_rate_limit_with_a_time_to_wait(openai_client, route):
    with pytest.raises(openai.RateLimitError) as caught:
        openai_client.chat.completions.create(model=route, messages=user("be limited"))
    assert int(caught.value.response.headers["retry-after"]) >= 1
