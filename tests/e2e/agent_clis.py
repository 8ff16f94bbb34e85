"""The agent CLIs as their users run them: a folder of their own, a home of their own, and the few settings that point them at
a gateway. The settings are those of docs/clients/, word for word; test_clients_docs.py holds the two together.

They are installed under .setup/agents (tests/setup/agents.sh), at the versions of agents/versions.json.
"""

import dataclasses
import json
import pathlib
import shutil
import subprocess
import time

from processes import ROOT

AGENTS = ROOT / ".setup" / "agents"
# Seconds for a run: a tool loop and a rate limit of one CLI together take 90 at most.
LIMIT = 45


@dataclasses.dataclass(frozen=True)
class Ran:
    """A run of a CLI: what it printed, how it ended, how long it took."""

    code: int
    out: str
    err: str
    seconds: float

    def __str__(self):
        return f"exit {self.code} after {self.seconds:.1f} s\n--- out ---\n{self.out[-3000:]}\n--- err ---\n{self.err[-3000:]}"


@dataclasses.dataclass(frozen=True)
class Agent:
    """A CLI in one dialect."""

    # As in agents/versions.json.
    package: str
    # How it is told apart where one CLI speaks several dialects.
    name: str
    # The dialect it speaks to the gateway.
    dialect: str
    # Its tool that runs a shell command, and the arguments that make it run `{command}`.
    tool: str
    arguments: str
    # The model's name, where the CLI goes by it.
    model: str = "agent-model"

    def installed(self):
        return (AGENTS / self.package / "node_modules" / ".bin").is_dir()

    def call(self, command):
        """The tool's arguments for a command, as JSON."""
        return self.arguments.replace("{command}", command)


AGENTS_BY_NAME = {
    agent.name: agent
    for agent in [
        Agent("claude-code", "claude-code", "messages", "Bash", '{"command":"{command}","description":"Read it"}'),
        Agent("codex", "codex", "responses", "exec_command", '{"cmd":"{command}"}'),
        # With a model that it knows its tools sit in the input, in namespaces, and the shell is called by a program in JavaScript.
        Agent(
            "codex",
            "codex-known",
            "responses",
            "functions__exec",
            json.dumps({"input": 'const r = await tools.exec_command({cmd: "{command}"}); text(r.output);'}),
            model="gpt-6-sol",
        ),
        Agent("gemini-cli", "gemini-cli", "gemini", "run_shell_command", '{"command":"{command}"}'),
        Agent("opencode", "opencode", "chat", "bash", '{"command":"{command}","description":"Read it"}'),
        Agent("opencode", "opencode-messages", "messages", "bash", '{"command":"{command}","description":"Read it"}'),
        Agent("opencode", "opencode-responses", "responses", "bash", '{"command":"{command}","description":"Read it"}'),
        Agent("opencode", "opencode-gemini", "gemini", "bash", '{"command":"{command}","description":"Read it"}'),
        Agent("qwen-code", "qwen-code", "chat", "run_shell_command", '{"command":"{command}","is_background":false}'),
        Agent("qwen-code", "qwen-code-messages", "messages", "run_shell_command", '{"command":"{command}","is_background":false}'),
        Agent("qwen-code", "qwen-code-responses", "responses", "run_shell_command", '{"command":"{command}","is_background":false}'),
        Agent("qwen-code", "qwen-code-gemini", "gemini", "run_shell_command", '{"command":"{command}","is_background":false}'),
        Agent("cline", "cline", "chat", "run_commands", '{"commands":["{command}"]}'),
        Agent("cline", "cline-responses", "responses", "run_commands", '{"commands":["{command}"]}'),
    ]
}


class Desk:
    """A user's machine for one CLI: a home, a project folder with a note in it, and nothing of the caller's own."""

    def __init__(self, agent, folder, url, key, model):
        self.agent, self.url, self.key, self.model = agent, url, key, model
        self.home = pathlib.Path(folder) / agent.name
        self.project = self.home / "project"
        self.project.mkdir(parents=True)
        for path, text in self.files().items():
            self.write(path, text)
        if command := self.sign_in():
            ran = self.execute(command, self.quiet())
            assert ran.code == 0, ran

    def note(self, text):
        (self.project / "note.txt").write_text(text + "\n")

    def write(self, path, text):
        path = self.home / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def files(self):
        """The files below the home that the CLI reads its settings from."""
        url, key, model = self.url, self.key, self.model
        if self.agent.package == "codex":
            return {
                ".codex/config.toml": f'model = "{model}"\nmodel_provider = "turnkeep"\n\n[model_providers.turnkeep]\n'
                f'name = "Turnkeep"\nbase_url = "{url}/v1"\nenv_key = "TURNKEEP_KEY"\nwire_api = "responses"\n'
            }
        if self.agent.package == "gemini-cli":
            settings = {
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "privacy": {"usageStatisticsEnabled": False},
                "general": {"disableAutoUpdate": True},
            }
            return {".gemini/settings.json": json.dumps(settings)}
        if self.agent.package == "opencode":
            npm, base = {
                "chat": ("@ai-sdk/openai-compatible", f"{url}/v1"),
                "messages": ("@ai-sdk/anthropic", f"{url}/v1"),
                "responses": ("@ai-sdk/openai", f"{url}/v1"),
                "gemini": ("@ai-sdk/google", f"{url}/v1beta"),
            }[self.agent.dialect]
            provider = {
                "npm": npm,
                "name": "Turnkeep",
                "options": {"baseURL": base, "apiKey": key},
                "models": {model: {"name": model, "limit": {"context": 200000, "output": 8000}}},
            }
            settings = {
                "autoupdate": False,
                "share": "disabled",
                "provider": {"turnkeep": provider},
                "model": f"turnkeep/{model}",
                "small_model": f"turnkeep/{model}",
                "permission": {"*": "allow"},
            }
            return {".config/opencode/opencode.json": json.dumps(settings)}
        if self.agent.package == "qwen-code":
            settings = {
                "$version": 3,
                "privacy": {"usageStatisticsEnabled": False},
                "general": {"enableAutoUpdate": False},
                "telemetry": {"enabled": False},
            }
            return {".qwen/settings.json": json.dumps(settings)}
        return {}

    def sign_in(self):
        """The command that stores the settings, where the CLI keeps them in a form of its own."""
        if self.agent.package != "cline":
            return None
        provider = "openai-native" if self.agent.dialect == "responses" else "openai-compatible"
        return ["cline", "auth", "-p", provider, "-k", self.key, "-m", self.model, "-b", f"{self.url}/v1"]

    def variables(self):
        """The variables that point the CLI at the gateway."""
        url, key, model = self.url, self.key, self.model
        openai = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": key, "OPENAI_MODEL": model}
        anthropic = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key, "ANTHROPIC_MODEL": model}
        google = {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": key, "GEMINI_MODEL": model}
        return {
            "claude-code": anthropic,
            "codex": {"TURNKEEP_KEY": key},
            "gemini-cli": google,
            "qwen-code": {"chat": openai, "responses": openai, "messages": anthropic, "gemini": google}[self.agent.dialect],
        }.get(self.agent.package, {})

    def quiet(self):
        """The variables that keep the CLI from asking anybody but the gateway, and from asking its user."""
        return {
            "claude-code": {
                "DISABLE_TELEMETRY": "1",
                "DISABLE_ERROR_REPORTING": "1",
                "DISABLE_AUTOUPDATER": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            },
            "gemini-cli": {"GEMINI_CLI_TRUST_WORKSPACE": "true"},
            "opencode": {
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            },
            "cline": {"CLINE_TELEMETRY_DISABLED": "1"},
        }.get(self.agent.package, {})

    def words(self, prompt, resume):
        """The command line."""
        package, dialect = self.agent.package, self.agent.dialect
        if package == "claude-code":
            return ["claude", *(["-c"] if resume else []), "-p", prompt, "--allowedTools", "Bash"]
        if package == "codex":
            flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
            return ["codex", "exec", *flags, *(["resume", "--last"] if resume else []), prompt]
        if package == "gemini-cli":
            return ["gemini", "--yolo", "-m", self.model, *(["--resume", "latest"] if resume else []), "-p", prompt]
        if package == "opencode":
            return ["opencode", "run", *(["-c"] if resume else []), prompt]
        if package == "qwen-code":
            kind = {"chat": "openai", "responses": "openai-responses", "messages": "anthropic", "gemini": "gemini"}[dialect]
            return ["qwen", "--yolo", "--auth-type", kind, *(["--continue"] if resume else []), "-p", prompt]
        provider = "openai-native" if dialect == "responses" else "openai-compatible"
        return ["cline", "-P", provider, prompt]

    def run(self, prompt, resume=False, seconds=LIMIT):
        return self.execute(self.words(prompt, resume), {**self.variables(), **self.quiet()}, seconds)

    def execute(self, words, variables, seconds=LIMIT):
        binaries = AGENTS / self.agent.package / "node_modules" / ".bin"
        node = pathlib.Path(shutil.which("node")).resolve().parent
        env = {
            "PATH": f"{binaries}:{node}:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            "USER": "user",
            "SHELL": "/bin/bash",
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            **variables,
        }
        began = time.monotonic()
        try:
            done = subprocess.run(
                words, cwd=self.project, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds
            )
            code, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            code, out, err = -1, late.stdout or b"", (late.stderr or b"") + b"\n(stopped: too late)"
        text = [stream.decode(errors="replace") for stream in (out, err)]
        return Ran(code, *text, time.monotonic() - began)


