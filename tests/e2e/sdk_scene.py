"""What the tests of the SDKs share: the routes of the gateway under test, and what the lab behind them says.

The lab answers `You said: "…". This is the lab model … answering.` and counts words as tokens, so that text and usage can be
checked exactly; asked to `call NAME` it calls that tool, with the smallest arguments that its schema takes.
"""

import pydantic

# The upstream's own name for the model, so that a test can see that the gateway put it there.
LAB_MODEL = "lab-one"
# Each name says the dialect of the upstream behind it: its kind, and its address below the lab's.
KINDS = {
    "chat": ("openai", "/v1"),
    "responses": ("openai-responses", "/v1"),
    "messages": ("anthropic", ""),
    "gemini": ("gemini", ""),
}
ROUTES = [f"via-{dialect}" for dialect in KINDS]

SAID = "hello there friend"
ANSWER = f'You said: "{SAID}". This is the lab model {LAB_MODEL} answering.'
PROMPT_TOKENS = len(SAID.split())
ANSWER_TOKENS = len(ANSWER.split())
# Its answer is longer than 16 tokens, which is the least limit that the Responses API takes.
LONG = " ".join(f"w{n}" for n in range(20))
LIMIT = 16
CUT = f'You said: "{LONG}"'.split()[:LIMIT]

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}


class Person(pydantic.BaseModel):
    name: str
    age: int


def user(text):
    return [{"role": "user", "content": text}]


def upstreams(url):
    """An upstream of each kind over one address, in the form that `Gateway` takes."""
    return [{"name": f"up-{name}", "kind": kind, "base_url": f"{url}{path}"} for name, (kind, path) in KINDS.items()]


def models(target=LAB_MODEL):
    """A model over each of them, named by its route."""
    return [{"name": f"via-{name}", "routes": [(f"up-{name}", target)]} for name in KINDS]
