"""docs/clients/ says what the tests do: settings of the agent CLIs are those they are run with, and the SDKs' programs run.

A fenced block of a page says in its first line what it is: `sh settings NAME`, `json FILE NAME`, `sh install`, `python SET`, `js`.
"""

import json
import pathlib
import re
import shlex
import subprocess

import pytest

from agent_clis import AGENTS_BY_NAME, Desk
from processes import ROOT, Gateway, environment
from sdk_scene import ANSWER

PAGES = ROOT / "docs" / "clients"
HERE = pathlib.Path(__file__).parent
URL, KEY, MODEL = "http://127.0.0.1:4141", "tk_your_key", "your-model"
BLOCK = re.compile(r"^```(\w+)[ ]*([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks():
    """(page, language, the other words of the fence, text) of every fenced block."""
    for page in sorted(PAGES.glob("*.md")):
        for language, about, text in BLOCK.findall(page.read_text()):
            yield page.name, language, about.split(), text


BLOCKS = list(blocks())


def of(language, kind):
    return [
        pytest.param(about, text, id=f"{page}-{'-'.join(about)}")
        for page, tongue, about, text in BLOCKS
        if tongue == language and about[:1] == [kind]
    ]


def described(name):
    """The machine of a user who follows the page, but for its folder."""
    desk = object.__new__(Desk)
    desk.agent, desk.url, desk.key, desk.model = AGENTS_BY_NAME[name], URL, KEY, MODEL
    return desk


def exports(lines):
    return dict(line.removeprefix("export ").split("=", 1) for line in lines)


@pytest.mark.parametrize("about, text", of("sh", "settings"))
def test_the_variables_of_a_page_are_those_the_cli_is_run_with(about, text):
    *lines, command = text.splitlines()
    desk = described(about[1])
    assert exports(lines) == desk.variables()
    used = desk.words("anything", resume=False)
    words = shlex.split(command)
    assert words[0] == used[0] and set(words) <= set(used)


@pytest.mark.parametrize("about, text", of("sh", "quiet"))
def test_the_variables_that_keep_a_cli_quiet_are_those_it_is_run_with(about, text):
    assert exports(text.splitlines()) == described(about[1]).quiet()


@pytest.mark.parametrize("about, text", of("sh", "sign-in"))
def test_the_command_that_signs_a_cli_in_is_the_one_that_is_run(about, text):
    assert shlex.split(text) == described(about[1]).sign_in()


FILES = [(language, about, text) for _, language, about, text in BLOCKS if language in ("json", "toml")]


@pytest.mark.parametrize("language, about, text", FILES, ids=[" ".join(about) for _, about, _ in FILES])
def test_a_settings_file_of_a_page_is_the_one_the_cli_is_run_with(language, about, text):
    path, name = about
    wanted = described(name).files()[path.removeprefix("~/")]
    if language == "json":
        assert json.loads(text) == json.loads(wanted)
    else:
        assert text == wanted


def test_every_cli_has_its_page_with_all_that_it_is_run_with():
    told = {(page, tuple(about[-2:])) for page, _, about, _ in BLOCKS}
    for agent in AGENTS_BY_NAME.values():
        page, desk = f"{agent.package}.md", described(agent.name)
        assert (PAGES / page).is_file(), page
        for path in desk.files():
            assert (page, (f"~/{path}", agent.package)) in told, path
        if desk.variables():
            same = [name for name in AGENTS_BY_NAME if described(name).variables() == desk.variables()]
            assert any((page, ("settings", name)) in told for name in same), agent.name
        if desk.quiet():
            assert (page, ("quiet", agent.package)) in told, agent.name
        if desk.sign_in():
            assert (page, ("sign-in", agent.name)) in told, agent.name


def test_the_table_of_opencodes_dialects_is_what_it_is_run_with():
    text = (PAGES / "opencode.md").read_text()
    for name in ("opencode", "opencode-messages", "opencode-responses", "opencode-gemini"):
        [settings] = described(name).files().values()
        provider = json.loads(settings)["provider"]["turnkeep"]
        assert f"`{provider['npm']}` | `{provider['options']['baseURL']}` |" in text


def test_every_page_is_in_the_index_and_installs_what_is_tested():
    index = (PAGES / "README.md").read_text()
    pinned = {f"{name}@{version}" for agent in json.loads((HERE / "agents" / "versions.json").read_text()).values() for name, version in agent.items()}
    pinned |= {f"{name}@{version}" for name, version in json.loads((HERE / "js" / "package.json").read_text())["dependencies"].items()}
    for lock in ("current", "frameworks"):
        text = (HERE / "requirements" / f"{lock}.in").read_text()
        pinned |= {line.split(";")[0].strip() for line in text.splitlines() if not line.startswith("#")}
    pages = {page.name for page in PAGES.glob("*.md")} - {"README.md", "matrix.md"}
    assert pages == set(re.findall(r"\]\(([\w-]+\.md)\)", index)) - {"matrix.md"}
    installs = {page: text for page, _, about, text in BLOCKS if about == ["install"]}
    assert installs.keys() == pages
    for page, text in installs.items():
        for line in text.splitlines():
            wanted = [word for word in shlex.split(line)[2:] if word != "-g"]
            assert wanted and set(wanted) <= pinned, (page, set(wanted) - pinned)


# One route each, of a dialect that the client does not speak: the SDKs' own tests go over all of them.
PROGRAMS = [
    pytest.param(language, about, text, "via-messages" if page.startswith("google") else "via-gemini", id=f"{page}-{language}")
    for page, language, about, text in BLOCKS
    if language in ("python", "js")
]


@pytest.mark.parametrize("language, about, text, route", PROGRAMS)
def test_the_program_of_a_page_runs_and_prints_the_answer(gateway, tmp_path, language, about, text, route):
    program = text.replace(URL, gateway.url).replace(KEY, Gateway.KEY).replace(MODEL, route)
    file = tmp_path / ("program.py" if language == "python" else "program.mjs")
    file.write_text(program)
    if language == "python":
        interpreter = ROOT / ".setup" / about[0] / "bin" / "python"
    else:
        interpreter = "node"
        (tmp_path / "node_modules").symlink_to(ROOT / ".setup" / "js" / "node_modules")
    done = subprocess.run([interpreter, file], env=environment(), capture_output=True, timeout=120, check=False)
    assert done.returncode == 0 and done.stdout.decode().count(ANSWER) >= 1, done.stderr.decode()[-3000:]
    # Each line is one client's.
    assert set(done.stdout.decode().split("\n")) <= {ANSWER, ""}
