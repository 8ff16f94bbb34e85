"""Every agent CLI in every dialect it speaks, over every upstream of another dialect, and with every fault. Run by hand
(`make test-clients ALL=1`); the dated result is docs/clients/matrix.md.
"""

import json

import pytest

from agent_clis import AGENTS_BY_NAME
from agent_scene import (
    PROMPT,
    UPSTREAMS,
    Scene,
    answers_with_the_word,
    calls_the_shell,
    check_loop,
    check_rate_limit,
    fails_once,
    installed,
    says_done,
    shown_tool,
)

WAYS = [(name, upstream) for name, agent in AGENTS_BY_NAME.items() for upstream in UPSTREAMS if upstream != agent.dialect]
FEW = [(name, next(up for up in UPSTREAMS if up != agent.dialect)) for name, agent in AGENTS_BY_NAME.items()]


@pytest.mark.parametrize("name, upstream", WAYS)
def test_a_tool_loop_brings_what_only_the_file_holds(tmp_path, name, upstream):
    check_loop(tmp_path, name, upstream)


@pytest.mark.parametrize("name, upstream", FEW)
def test_a_rate_limit_with_its_wait_is_waited_for_and_the_turn_is_answered(tmp_path, name, upstream):
    check_rate_limit(tmp_path, name, upstream)


FAULTS = {
    "overload": "error = { status = 529 }",
    "a cut before any answer": 'fault = "reset_before_reply"',
    "a cut in the answer": 'text = "one two three four"\nfault = "reset_mid_stream"\nfault_at = "after_words 2"',
    "an error in the answer": 'text = "one two three four"\nfault = "error_in_stream"\nfault_at = "after_words 2"\nerror = { status = 500 }',
}
# These may give up at a stream that ends in an error: then with an error of their own, and never with a short answer.
ENDS_AT_AN_ERROR = {"cline", "cline-responses", "gemini-cli", "opencode-messages", "qwen-code-responses"}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name, upstream", FEW)
def test_a_fault_is_repaired_or_told_and_never_taken_for_an_answer(tmp_path, name, upstream, fault, record_property):
    installed(name)
    with Scene(tmp_path, name, upstream, [fails_once(FAULTS[fault]), says_done]) as scene:
        ran = scene.desk.run("Say that all of it is done.")
        if fault.endswith("in the answer") and name in ENDS_AT_AN_ERROR and ran.code != 0:
            assert "All of it is done now." not in ran.out, ran
            record_property("came_out", "error")
            return
        assert ran.code == 0 and "All of it is done now." in ran.out, f"{ran}\n{scene.gateway.tail()}"


@pytest.mark.parametrize("name, upstream", [way for way in FEW if not way[0].startswith("cline")])
def test_a_resumed_session_sends_its_history_and_is_answered(tmp_path, name, upstream):
    installed(name)
    with Scene(tmp_path, name, upstream, [answers_with_the_word, calls_the_shell, says_done]) as scene:
        first = scene.desk.run(PROMPT)
        assert scene.word in first.out, first
        second = scene.desk.run("And which word was it again?", resume=True)
        last = [turn for turn in scene.seen() if shown_tool(turn, scene.agent.tool)][-1]
        text = json.dumps(last["body"])
        assert scene.word in text and "which word was it again" in text, f"{second}\n{text[-3000:]}"
        assert second.code == 0 and scene.word in second.out, second
