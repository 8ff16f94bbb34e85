"""A scene for one agent CLI: a lab that plays the model by rules, a gateway over it, and a user's machine."""

import json
import secrets

from agent_clis import AGENTS_BY_NAME, Desk
from processes import Gateway, Lab, request
from sdk_scene import KINDS

UPSTREAMS = list(KINDS)
# The kinds that keep conversations beside them, and are not in the matrix.
KEEPING = KINDS | {"cascade": ("cascade", "")}

PROMPT = "Read the file note.txt with your shell and tell me the word in it."


class Scene:
    """A lab that plays by rules, a gateway over it, and a user's machine."""

    def __init__(self, folder, name, upstream, rules):
        self.agent = AGENTS_BY_NAME[name]
        self.word = "word" + secrets.token_hex(8)
        self.model = self.agent.model
        script = "".join(rule(self) for rule in rules)
        self.lab = Lab(folder, script)
        kind, path = KEEPING[upstream]
        upstreams = [{"name": "lab", "kind": kind, "base_url": f"{self.lab.url}{path}"}]
        models = [{"name": self.model, "routes": [("lab", "lab-agent")]}, {"name": "*", "routes": [("lab", None)]}]
        self.gateway = Gateway(folder, upstreams, models)
        self.desk = Desk(self.agent, folder, self.gateway.url, Gateway.KEY, self.model)
        self.desk.note(self.word)

    def asked(self):
        """All that reached the lab."""
        return request(self.lab.url, "GET", "/lab/requests").json()

    def seen(self):
        """The turns that reached the lab for the agent's own model."""
        return [turn for turn in self.asked() if "lab-agent" in turn["target"] or "lab-agent" in json.dumps(turn["body"])]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.gateway.stop()
        self.lab.stop()


def answers_with_the_word(scene):
    return f'[[rule]]\nmodel = "lab-agent"\nbody_contains = "{scene.word}"\ntext = "The word is {scene.word}, says the file."\n'


def calls_the_shell(scene):
    # Only the agent's own turns carry its tools; requests for titles do not.
    tool, arguments = scene.agent.tool, json.dumps(scene.agent.call("cat note.txt"))
    return (
        f'[[rule]]\nmodel = "lab-agent"\nbody_contains = "\\"{tool}\\""\ntimes = 2\n'
        f"tool_calls = [{{ name = {json.dumps(tool)}, arguments = {arguments} }}]\n"
    )


def fails_once(fault):
    def rule(scene):
        return f'[[rule]]\nmodel = "lab-agent"\nbody_contains = "\\"{scene.agent.tool}\\""\ntimes = 1\n{fault}\n'

    return rule


def says_done(scene):
    return '[[rule]]\nmodel = "lab-agent"\ntext = "All of it is done now."\n'


def installed(name):
    assert AGENTS_BY_NAME[name].installed(), f"{name} is not installed: run tests/setup/agents.sh"


def shown_tool(turn, tool):
    return f'"{tool}"' in json.dumps(turn["body"])


def check_loop(folder, name, upstream):
    installed(name)
    with Scene(folder, name, upstream, [answers_with_the_word, calls_the_shell]) as scene:
        ran = scene.desk.run(PROMPT)
        turns = scene.seen()
        shown = [turn for turn in turns if shown_tool(turn, scene.agent.tool)]
        assert len(shown) >= 2, f"{ran}\n{json.dumps(turns)[:4000]}\n{scene.gateway.tail()}"
        assert all(turn["status"] == 200 for turn in shown), [turn["status"] for turn in turns]
        told = [turn for turn in shown if scene.word in json.dumps(turn["body"])]
        assert told, f"the word never came back\n{ran}\n{json.dumps(shown[-1])[-3000:]}"
        assert ran.code == 0 and scene.word in ran.out, f"{ran}\n{scene.gateway.tail()}"


def check_rate_limit(folder, name, upstream):
    installed(name)
    fault = "error = { status = 429, retry_after = 2 }"
    with Scene(folder, name, upstream, [fails_once(fault), says_done]) as scene:
        ran = scene.desk.run("Say that all of it is done.")
        statuses = [turn["status"] for turn in scene.seen() if shown_tool(turn, scene.agent.tool)]
        assert statuses[:1] == [429] and 200 in statuses, f"{statuses}\n{ran}\n{scene.gateway.tail()}"
        assert ran.code == 0 and "All of it is done now." in ran.out, f"{ran}\n{scene.gateway.tail()}"


# Tool calls of one run: enough for what clients put in and take out on the way.
CALLS = 30


def check_conversation(folder, name, upstream):
    """Every turn after the first goes on in the conversation that the upstream keeps, and brings only what is new."""
    installed(name)
    # A Cascade server is told the tools once.
    told_again = upstream != "cascade"

    def calls_it_often(scene):
        tool, arguments = scene.agent.tool, json.dumps(scene.agent.call("cat note.txt"))
        answers = 'path = "/turnkeep.cascade.v1.CascadeService/Send"\n'
        shown = f'body_contains = "\\"{tool}\\""\n' if told_again else answers
        return (
            f'[[rule]]\nmodel = "lab-agent"\n{shown}times = {CALLS}\n'
            f"tool_calls = [{{ name = {json.dumps(tool)}, arguments = {arguments} }}]\n"
        )

    with Scene(folder, name, upstream, [calls_it_often, says_done]) as scene:
        ran = scene.desk.run(PROMPT)
        assert ran.code == 0 and "All of it is done now." in ran.out, f"{ran}\n{scene.gateway.tail()}"
        counts = scene.gateway.counters()["conversations"]
        assert (counts["hits"], counts["misses"], counts["dropped"]) == (CALLS, 0, 0), f"{counts}\n{scene.gateway.tail()}"
        if told_again:
            turns = [turn for turn in scene.seen() if shown_tool(turn, scene.agent.tool)]
            alone = [at for at, turn in enumerate(turns) if not turn["body"].get("previous_response_id")]
            assert (len(turns), alone) == (CALLS + 1, [0]), f"{alone}\n{json.dumps(turns[alone[-1]])[-3000:]}"
