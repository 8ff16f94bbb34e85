"""The JavaScript SDKs over every upstream dialect: each of js/*.mjs is one process that runs all its cases over all routes.

They are installed under .setup/js, exactly as js/package-lock.json says. What the lab upstream says is in sdk_scene.py.
"""

import functools
import json
import pathlib
import shutil
import subprocess

import pytest

from processes import ROOT, Gateway, environment
from sdk_scene import ANSWER, ROUTES

JS = pathlib.Path(__file__).parent / "js"
INSTALLED = ROOT / ".setup" / "js" / "node_modules"
PERSON = {"name": "lab", "age": 1}


def is_exactly(expected):
    return lambda gave: gave.get("value") == expected


def quotes_the_rain(gave):
    return "get_weather returned" in gave.get("value", "") and "rain" in gave["value"]


def is_refused_as_unknown(gave):
    # @google/genai puts the status into the message alone.
    error = gave.get("error", {})
    return error.get("status") == 404 or "404" in error.get("message", "")


said, counted, person = is_exactly(ANSWER), is_exactly(True), is_exactly(PERSON)
AI = {
    f"{provider}_{case}": check
    for provider in ("openai", "openai_chat", "compatible", "anthropic", "google")
    for case, check in {
        "text": said, "tools": quotes_the_rain, "stream": quotes_the_rain, "object": person, "unknown_model": is_refused_as_unknown,
    }.items()
}
CASES = {
    "openai": {
        "chat": said, "chat_stream": said, "chat_helper": said, "chat_tools": quotes_the_rain, "chat_parse": person,
        "responses": said, "responses_helper": said, "responses_tools": quotes_the_rain, "responses_parse": person,
        "unknown_model": is_refused_as_unknown,
    },
    "anthropic": {
        "messages": said, "messages_stream": said, "messages_helper": said, "messages_tools": quotes_the_rain,
        "messages_object": person, "count": counted, "unknown_model": is_refused_as_unknown,
    },
    "genai": {
        "generate": said, "generate_stream": said, "generate_tools": quotes_the_rain, "generate_object": person,
        "count": counted, "unknown_model": is_refused_as_unknown,
    },
    "ai": AI,
}


@pytest.fixture(scope="module")
def gave(gateway, folder):
    assert INSTALLED.is_dir(), "the JavaScript SDKs are not installed: run tests/setup/install.sh"
    # Node looks for packages beside the program.
    beside = folder / "js"
    beside.mkdir()
    (beside / "node_modules").symlink_to(INSTALLED)
    for program in JS.glob("*.mjs"):
        shutil.copy(program, beside)
    env = environment(BASE=gateway.url, KEY=Gateway.KEY, ROUTES=",".join(ROUTES))

    @functools.cache
    def run(name):
        done = subprocess.run(["node", beside / f"{name}.mjs"], env=env, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, f"{done.stderr.decode()[-3000:]}\n{gateway.tail()}"
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("program, case", [(program, case) for program, cases in CASES.items() for case in cases])
def test_a_javascript_client_gets_what_it_asks_for(gave, program, case, route):
    got = gave(program)[f"{case} {route}"]
    assert CASES[program][case](got), got


def test_every_case_of_the_programs_is_checked(gave):
    for program, cases in CASES.items():
        assert {name.split()[0] for name in gave(program)} == set(cases)
