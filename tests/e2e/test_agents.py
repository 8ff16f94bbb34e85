"""The agent CLIs through the gateway, each over an upstream of another dialect. More of them, and more faults, are in by_hand/.

A tool loop counts when the upstream was shown the tool, was answered with the text that only the file holds, and the CLI
printed it. The lab plays the model: it calls the CLI's own shell tool, and says what it was told.
"""

import json
import secrets

import pytest

from agent_clis import AGENTS
from agent_scene import check_conversation, check_loop, check_rate_limit, installed
from processes import Gateway, Lab, request

# Each CLI in the dialect it is known for.
USUAL = [
    ("claude-code", "chat"),
    ("codex", "messages"),
    ("codex-known", "gemini"),
    ("gemini-cli", "responses"),
    ("opencode", "gemini"),
    ("qwen-code", "messages"),
]


@pytest.mark.parametrize("name, upstream", USUAL)
def test_a_tool_loop_brings_what_only_the_file_holds(tmp_path, name, upstream):
    check_loop(tmp_path, name, upstream)


@pytest.mark.parametrize("name, upstream", USUAL)
def test_a_rate_limit_with_its_wait_is_waited_for_and_the_turn_is_answered(tmp_path, name, upstream):
    check_rate_limit(tmp_path, name, upstream)


@pytest.mark.parametrize("name, upstream", [("claude-code", "responses"), ("claude-code", "cascade"), ("codex", "cascade")])
def test_thirty_tool_calls_go_on_in_the_conversation_that_the_upstream_keeps(tmp_path, name, upstream):
    check_conversation(tmp_path, name, upstream)


def test_a_real_agent_is_an_upstream_and_goes_on_in_its_session_while_it_asks_the_gateway_itself(tmp_path):
    installed("gemini-cli")
    home = tmp_path / "home"
    (home / ".gemini").mkdir(parents=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True},
    }
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    command = [str(AGENTS / "gemini-cli" / "node_modules" / ".bin" / "gemini"), "--acp"]
    toml = f"""
[[upstreams]]
name = "agent"
kind = "acp"
command = {json.dumps(command)}
[[upstreams.accounts]]
name = "me"
home = {json.dumps(str(home))}
env = {{ GEMINI_API_KEY = "{Gateway.KEY}", GOOGLE_GEMINI_BASE_URL = "{{url}}", GEMINI_CLI_TRUST_WORKSPACE = "true" }}
"""
    with Lab(tmp_path) as lab:
        upstreams = [{"name": "lab", "kind": "gemini", "base_url": lab.url}]
        models = [
            {"name": "my-agent", "routes": [("agent", "default")]},
            {"name": "*", "routes": [("lab", None)]},
        ]
        with Gateway(tmp_path, upstreams, models, toml=toml) as gateway:
            messages = []
            words = ["first" + secrets.token_hex(4), "second" + secrets.token_hex(4)]
            for word in words:
                messages.append({"role": "user", "content": f"Repeat: {word}"})
                body = json.dumps({"model": "my-agent", "messages": messages}).encode()
                headers = [("authorization", f"Bearer {Gateway.KEY}"), ("content-type", "application/json")]
                answer = request(gateway.url, "POST", "/v1/chat/completions", body, headers)
                assert answer.status == 200, f"{answer}\n{gateway.tail()}"
                said = answer.json()["choices"][0]["message"]["content"]
                assert said, f"{answer}\n{gateway.tail()}"
                messages.append({"role": "assistant", "content": said})
            counts = gateway.counters()["conversations"]
            assert (counts["hits"], counts["advanced"], counts["dropped"]) == (1, 1, 0), counts
            asked = [turn["body"] for turn in request(lab.url, "GET", "/lab/requests").json()]
            last = json.dumps([body for body in asked if words[1] in json.dumps(body)][-1])
            # One session: the agent itself brought the first turn, as turns of its own and not as a told history.
            assert all(word in last for word in words), last[-3000:]
            assert last.count(f"Repeat: {words[0]}") == 1, last[-3000:]
