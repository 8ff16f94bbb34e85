"""Every agent CLI in every dialect it speaks, over every upstream of another dialect, and with every fault. Run by hand
(`make test-clients ALL=1`); the dated result is docs/clients/matrix.md.
"""

import json
import secrets

import pytest

from agent_clis import AGENTS_BY_NAME, LIMIT
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
        # Some wait long before they ask again.
        ran = scene.desk.run("Say that all of it is done.", seconds=2 * LIMIT)
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


# The tool that starts a sub-agent, and its arguments. Not among them is Codex with a model that it knows: its agents write to each
# other in items (`agent_message`) that no other dialect has.
SUB_AGENTS = {
    "claude-code": ("Agent", {"description": "Run an errand", "prompt": "{errand}", "run_in_background": False}),
    "cline": ("spawn_agent", {"systemPrompt": "You run errands.", "task": "{errand}"}),
    "codex": ("multi_agent_v1__spawn_agent", {"message": "{errand}"}),
    "gemini-cli": ("invoke_agent", {"agent_name": "generalist", "prompt": "{errand}"}),
    "opencode": ("task", {"description": "Run an errand", "prompt": "{errand}", "subagent_type": "general"}),
    "qwen-code": ("agent", {"description": "Run an errand", "prompt": "{errand}", "subagent_type": "general-purpose"}),
}


def rule(contains, **answer):
    """A rule of the lab's script; what it answers is given as TOML."""
    return f"[[rule]]\nbody_contains = {json.dumps(contains)}\n" + "".join(f"{key} = {toml}\n" for key, toml in answer.items())


def calls(name, arguments):
    return f"[{{ name = {json.dumps(name)}, arguments = {json.dumps(json.dumps(arguments))} }}]"


def plays_a_sub_agent(name, asked, errand, finding):
    """The rules of a model that sends a sub-agent on an errand, is that sub-agent, too, and says what came back from it.

    Whoever holds the finding has been told. Of the others the parent holds what its user asked, the sub-agent the errand alone.
    """
    tool, arguments = SUB_AGENTS[name]
    arguments = json.loads(json.dumps(arguments).replace("{errand}", f"Go on the errand {errand}."))
    words = f"I found {finding} there."

    told = rule(finding, text=json.dumps(f"It came back with {finding}, and that is all."))
    finds = rule(errand, text=json.dumps(words))
    if name == "gemini-cli":
        # Its sub-agents hand in what they found by a tool.
        finds = rule(errand, tool_calls=calls("complete_task", {"result": {"response": words}}))
    if name == "codex":
        # Its sub-agents work in the background, and it is told by and by; until then its shell keeps it busy.
        starts = rule(asked, times=1, tool_calls=calls(tool, arguments))
        busy = rule(asked, times=50, tool_calls=calls("exec_command", {"cmd": "sleep 0.2"}))
        return told + starts + busy + finds
    # A request for a title holds what the user asked, too, but no tool.
    return told + finds + rule(f'"{tool}"', times=1, tool_calls=calls(tool, arguments))


@pytest.mark.parametrize("name, upstream", [way for way in WAYS if way[0] in SUB_AGENTS])
def test_a_sub_agent_is_served_and_its_words_come_back(tmp_path, name, upstream):
    installed(name)
    asked, errand, finding = (kind + secrets.token_hex(8) for kind in ("asked", "errand", "finding"))
    with Scene(tmp_path, name, upstream, [lambda _: plays_a_sub_agent(name, asked, errand, finding)]) as scene:
        ran = scene.desk.run(f"Send somebody on the errand of {asked}.")
        told = f"{ran}\n{scene.gateway.tail()}"
        turns = [(json.dumps(turn["body"]), turn["status"]) for turn in scene.asked()]
        own = [status for body, status in turns if errand in body and asked not in body and finding not in body]
        assert own and set(own) == {200}, f"the sub-agent's own turns: {own}\n{told}"
        back = [status for body, status in turns if asked in body and finding in body]
        assert back and set(back) == {200}, f"the parent's turns with what it was told: {back}\n{told}"
        assert ran.code == 0 and f"It came back with {finding}" in ran.out, told
