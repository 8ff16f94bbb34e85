"""Frameworks that bring the SDKs along, each in the dialects it speaks, over an upstream of another: a tool's turn and a stream.

Run by the set `frameworks` (see requirements/). What the lab upstream says is in sdk_scene.py.
"""

import asyncio

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

from processes import Gateway
from sdk_scene import ANSWER, ROUTES, SAID, Person

KEY = Gateway.KEY


def elsewhere(dialects):
    """Every dialect with the routes whose upstream speaks another."""
    return [(dialect, route) for dialect in dialects for route in ROUTES if route != f"via-{dialect}"]


# --- LangChain -------------------------------------------------------------------------------------------------------


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return "rain"


def langchain(dialect, route, url):
    if dialect == "messages":
        return ChatAnthropic(model=route, base_url=url, api_key=KEY, max_retries=0, max_tokens=200)
    more = {"use_responses_api": True} if dialect == "responses" else {}
    return ChatOpenAI(model=route, base_url=f"{url}/v1", api_key=KEY, max_retries=0, **more)


every_langchain = pytest.mark.parametrize("dialect, route", elsewhere(["chat", "responses", "messages"]))


@every_langchain
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_langchain_goes_through_a_tool_loop(gateway, dialect, route, streamed):
    model = langchain(dialect, route, gateway.url).bind_tools([get_weather])
    history = [HumanMessage("call get_weather")]
    for _ in range(2):
        if streamed:
            answer = None
            for chunk in model.stream(history):
                answer = chunk if answer is None else answer + chunk
        else:
            answer = model.invoke(history)
        history.append(answer)
        history += [ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"]) for call in answer.tool_calls]
    assert [message.type for message in history if not isinstance(message, ToolMessage)][0] == "human"
    assert sum(isinstance(message, ToolMessage) for message in history) == 1
    assert 'get_weather returned: "rain"' in str(answer.text)


@every_langchain
def test_langchain_streams_an_answer(gateway, dialect, route):
    pieces = [str(chunk.text) for chunk in langchain(dialect, route, gateway.url).stream(SAID)]
    assert "".join(pieces) == ANSWER and sum(bool(piece) for piece in pieces) > 4


@every_langchain
def test_langchain_gets_its_structured_output(gateway, dialect, route):
    assert langchain(dialect, route, gateway.url).with_structured_output(Person).invoke("a person") == Person(name="lab", age=1)


# --- pydantic-ai -----------------------------------------------------------------------------------------------------


def pydantic_model(dialect, route, url):
    if dialect == "messages":
        return AnthropicModel(route, provider=AnthropicProvider(base_url=url, api_key=KEY))
    if dialect == "gemini":
        return GoogleModel(route, provider=GoogleProvider(base_url=url, api_key=KEY))
    model = OpenAIResponsesModel if dialect == "responses" else OpenAIChatModel
    return model(route, provider=OpenAIProvider(base_url=f"{url}/v1", api_key=KEY))


every_pydantic = pytest.mark.parametrize("dialect, route", elsewhere(["chat", "responses", "messages", "gemini"]))


@every_pydantic
def test_pydantic_ai_calls_a_tool_and_tells_what_it_said(gateway, dialect, route):
    agent = Agent(pydantic_model(dialect, route, gateway.url), instructions="Be brief.")
    asked = []

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather of a city."""
        asked.append(city)
        return "rain"

    said = agent.run_sync("call get_weather").output
    assert asked == ["lab"] and "get_weather returned" in said and "rain" in said


@every_pydantic
def test_pydantic_ai_streams_an_answer(gateway, dialect, route):
    async def ask():
        async with Agent(pydantic_model(dialect, route, gateway.url)).run_stream(SAID) as result:
            return [piece async for piece in result.stream_text(delta=True, debounce_by=None)]

    pieces = asyncio.run(ask())
    assert "".join(pieces) == ANSWER and len(pieces) > 4


@every_pydantic
def test_pydantic_ai_gets_its_structured_output(gateway, dialect, route):
    agent = Agent(pydantic_model(dialect, route, gateway.url), output_type=Person)
    assert agent.run_sync("a person").output == Person(name="lab", age=1)
