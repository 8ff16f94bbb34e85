"""What the SDKs make of an upstream's trouble: a rate limit with its wait, and an answer that breaks off.

Run once for each installed set of majors (see requirements/).
"""

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors, types

from processes import Gateway, Lab
from sdk_scene import ROUTES, SAID, models, upstreams, user

RETRY_AFTER = 20
LIMITED = f'[[rule]]\nerror = {{ status = 429, retry_after = {RETRY_AFTER} }}\n'
BROKEN = '[[rule]]\ntext = "one two three four five"\nfault = "{fault}"\nfault_at = "after_words 2"\n'
CLIENTS = ["chat", "responses", "messages", "gemini"]


def ask(gateway, client, route):
    """Streams one turn with a client that does not try again, and returns its text."""
    if client == "gemini":
        options = types.HttpOptions(base_url=gateway.url, timeout=30_000)
        gemini = genai.Client(api_key=Gateway.KEY, http_options=options)
        stream = gemini.models.generate_content_stream(model=route, contents=SAID)
        return "".join(chunk.text or "" for chunk in stream)
    if client == "messages":
        with anthropic.Anthropic(base_url=gateway.url, api_key=Gateway.KEY, max_retries=0, timeout=30) as messages:
            with messages.messages.stream(model=route, max_tokens=99, messages=user(SAID)) as stream:
                return stream.get_final_text()
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=Gateway.KEY, max_retries=0, timeout=30) as chat:
        if client == "chat":
            stream = chat.chat.completions.create(model=route, messages=user(SAID), stream=True)
            return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        with chat.responses.stream(model=route, input=SAID) as stream:
            return stream.get_final_response().output_text


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limited")
    with Lab(folder, LIMITED) as lab, Gateway(folder, upstreams(lab.url), models()) as gateway:
        yield gateway


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_rate_limit_arrives_as_the_clients_own_error_with_the_time_to_wait(limited, client, route):
    with pytest.raises((openai.RateLimitError, anthropic.RateLimitError, errors.ClientError)) as caught:
        ask(limited, client, route)
    headers = caught.value.response.headers
    assert 1 <= int(headers["retry-after"]) <= RETRY_AFTER, headers
    if client == "gemini":
        assert (caught.value.code, caught.value.status) == (429, "RESOURCE_EXHAUSTED")
        [told] = [detail for detail in caught.value.details["error"]["details"] if detail["@type"].endswith("RetryInfo")]
        assert told["retryDelay"].endswith("s")


@pytest.fixture(scope="module", params=["reset_mid_stream", "close_mid_stream", "no_terminal"])
def broken(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    script = BROKEN.format(fault=request.param)
    if request.param == "no_terminal":
        script = script.replace('fault_at = "after_words 2"\n', "")
    with Lab(folder, script) as lab, Gateway(folder, upstreams(lab.url), models()) as gateway:
        yield gateway


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("client", CLIENTS)
def test_an_answer_that_breaks_off_is_an_error_and_never_a_short_answer(broken, client, route):
    # The helper of the Responses API has no class of its own for an answer that failed.
    own = RuntimeError if client == "responses" else openai.APIError
    with pytest.raises((openai.APIError, anthropic.APIError, errors.APIError, own)):
        ask(broken, client, route)
