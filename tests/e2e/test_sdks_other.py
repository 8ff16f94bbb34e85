"""The older completions and the embeddings with the OpenAI SDK over every upstream that has them; every SDK under its prefix.

Run once for each installed set of majors (see requirements/). What the lab upstream says is in sdk_scene.py.
"""

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from processes import Gateway
from sdk_scene import ANSWER, ROUTES, SAID, user

every_route = pytest.mark.parametrize("route", ROUTES)
# The upstreams that have embeddings.
EMBEDS = ["via-chat", "via-gemini"]


@pytest.fixture(scope="module")
def client(gateway):
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=Gateway.KEY, max_retries=0, timeout=30) as client:
        yield client


@every_route
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_completion_is_answered(client, route, streamed):
    if streamed:
        chunks = list(client.completions.create(model=route, prompt=SAID, max_tokens=50, stream=True))
        text = "".join(chunk.choices[0].text for chunk in chunks if chunk.choices)
        assert {chunk.object for chunk in chunks} == {"text_completion"}
        finish = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1]
    else:
        answer = client.completions.create(model=route, prompt=SAID, max_tokens=50)
        assert answer.object == "text_completion" and answer.usage.total_tokens > 0
        text, finish = answer.choices[0].text, answer.choices[0].finish_reason
    assert (text, finish) == (ANSWER, "stop")


@pytest.mark.parametrize("route", EMBEDS)
def test_texts_become_vectors(client, route):
    one = client.embeddings.create(model=route, input=SAID)
    many = client.embeddings.create(model=route, input=["another text", SAID], encoding_format="float")
    assert [item.index for item in many.data] == [0, 1]
    assert len(one.data[0].embedding) == 8
    assert many.data[1].embedding == pytest.approx(one.data[0].embedding)
    assert many.data[0].embedding != pytest.approx(many.data[1].embedding)


@pytest.mark.parametrize("route", [route for route in ROUTES if route not in EMBEDS])
def test_an_upstream_without_embeddings_is_said_to_have_none(client, route):
    with pytest.raises(openai.APIStatusError) as caught:
        client.embeddings.create(model=route, input=SAID)
    assert 400 <= caught.value.status_code < 500 and "embedding" in caught.value.body["message"]


def test_each_sdk_finds_its_own_api_and_models_under_its_prefix(gateway):
    with openai.OpenAI(base_url=f"{gateway.url}/openai/v1", api_key=Gateway.KEY, max_retries=0, timeout=30) as client:
        assert client.responses.create(model="via-gemini", input=SAID).output_text == ANSWER
        assert {model.id for model in client.models.list()} == set(ROUTES)
    with anthropic.Anthropic(base_url=f"{gateway.url}/anthropic", api_key=Gateway.KEY, max_retries=0, timeout=30) as client:
        answer = client.messages.create(model="via-chat", max_tokens=100, messages=user(SAID))
        assert answer.content[0].text == ANSWER
        assert {model.id for model in client.models.list()} == set(ROUTES)
    options = types.HttpOptions(base_url=f"{gateway.url}/gemini", timeout=30_000)
    client = genai.Client(api_key=Gateway.KEY, http_options=options)
    assert client.models.generate_content(model="via-messages", contents=SAID).text == ANSWER
    assert {model.name for model in client.models.list()} == {f"models/{route}" for route in ROUTES}
