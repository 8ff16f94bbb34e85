"""The agent CLIs through the gateway, each over an upstream of another dialect. More of them, and more faults, are in by_hand/.

A tool loop counts when the upstream was shown the tool, was answered with the text that only the file holds, and the CLI
printed it. The lab plays the model: it calls the CLI's own shell tool, and says what it was told.
"""

import pytest

from agent_scene import check_conversation, check_loop, check_rate_limit

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
