"""Starts each gateway with its committed configuration, one for each scenario, and reads what it publishes of itself.

A gateway is its name, the dialects it is asked in, and how it is started; the scenarios, the caller, the upstream and the checker are
the same for all. Every child ends with its `with` block.
"""

import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "e2e"))

from processes import Process, environment, free_port, request, until  # noqa: E402

SETUP = ROOT / ".setup" / "scorecard"
PORTKEY = SETUP / "portkey" / "node_modules" / "@portkey-ai" / "gateway"
BINARY = pathlib.Path(os.environ.get("TURNKEEP_BIN", ROOT / "target" / "release" / "turnkeep"))
GATEWAYS = {"turnkeep": ("chat", "responses", "messages", "gemini"), "litellm": ("chat",), "portkey": ("chat",), "sdk": ("chat",)}
# A peer that imports much takes its time on a machine that does other things.
START_SECONDS = 180
KINDS = {"chat": "openai", "responses": "openai-responses", "messages": "anthropic", "gemini": "gemini"}


def answers(url, path):
    try:
        return request(url, "GET", path, timeout=5).status == 200
    except OSError:
        return False


def resident_mib(pid):
    """The resident memory of a process and of all its children, in MiB; none once it has ended."""
    try:
        total = 0
        with open(f"/proc/{pid}/status") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    total = int(line.split()[1]) / 1024
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as children:
                total += sum(resident_mib(int(child)) or 0 for child in children.read().split())
        return round(total, 1)
    except (OSError, ValueError):
        return None


class Running:
    """A started gateway: where it listens, what a caller adds to its requests, and its process."""

    extra = ()

    def __init__(self, folder, upstream_port, dialect):
        self.folder, self.dialect = pathlib.Path(folder), dialect
        self.upstream = f"http://127.0.0.1:{upstream_port}"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None
        # Set when nobody waits for its start any more.
        self.abandoned = False

    def wait(self, path):
        def ready():
            if self.abandoned:
                raise AssertionError("abandoned while it started")
            if not self.process.alive():
                raise AssertionError(f"it ended\n{self.process.tail()}")
            return answers(self.url, path)

        try:
            until(ready, f"{path} answers\n{self.process.log}", seconds=START_SECONDS, every=0.1)
        except BaseException:
            self.process.kill()
            raise

    def memory(self):
        return resident_mib(self.process.child.pid)

    def in_flight(self):
        """How many slots it says it holds; none where it does not say."""
        return None

    def ledger(self):
        """What it has written down of all attempts, after its end; none where it keeps nothing here."""
        return None

    def stop(self):
        if self.process is not None:
            self.process.stop()


class Turnkeep(Running):
    key = "tk-scorecard-caller-key-0123456789"

    def start(self):
        base = self.upstream + ("/v1" if self.dialect in ("chat", "responses") else "")
        text = (HERE / "gateways" / "turnkeep" / "turnkeep.toml").read_text()
        for mark, value in (("@PORT@", str(self.port)), ("@KIND@", KINDS[self.dialect]), ("@BASE@", base)):
            text = text.replace(mark, value)
        self.config = self.folder / "turnkeep.toml"
        self.config.write_text(text)
        self.process = Process("turnkeep", [BINARY, "serve", "--config", self.config], self.folder)
        self.wait("/readyz")

    def in_flight(self):
        answer = request(self.url, "GET", "/dashboard/api/connect-metrics", headers=[("authorization", f"Bearer {self.key}")])
        return sum(account["in_flight"] for account in answer.json()["accounts"])

    def ledger(self):
        command = [BINARY, "usage", "--config", self.config, "--by", "outcome", "--json"]
        done = subprocess.run(command, capture_output=True, timeout=30, env=environment(), cwd=self.folder, check=True)
        rows = json.loads(done.stdout)
        whole = [row for row in rows if row["by"]["outcome"] == "completed"]
        return {
            "attempts": sum(row["attempts"] for row in rows),
            "exact_input": sum(row["input"] for row in whole),
            "exact_output": sum(row["output"] for row in whole),
            "by_outcome": {row["by"]["outcome"]: row["attempts"] for row in rows},
        }


class LiteLlm(Running):
    key = "sk-scorecard-caller-key-0123456789"

    def start(self):
        text = (HERE / "gateways" / "litellm" / "config.yaml").read_text().replace("@BASE@", self.upstream + "/v1")
        config = self.folder / "config.yaml"
        config.write_text(text)
        command = [SETUP / "litellm" / "bin" / "litellm", "--config", config, "--host", "127.0.0.1", "--port", self.port]
        # Documented: the price list of the package instead of one from the network.
        env = environment(LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_TELEMETRY="False", LITELLM_LOG="ERROR")
        self.process = Process("litellm", command, self.folder, env=env)
        self.wait("/health/liveliness")


class Portkey(Running):
    key = "portkey-needs-none"

    def start(self):
        config = json.loads((HERE / "gateways" / "portkey" / "config.json").read_text())["config"]
        text = json.dumps(config).replace("@BASE@", self.upstream + "/v1")
        self.extra = (("x-portkey-config", text),)
        self.process = Process("portkey", ["node", PORTKEY / "build" / "start-server.js", f"--port={self.port}", "--headless"], self.folder)
        self.wait("/")


class Sdk(Running):
    """No gateway: a child that makes the calls with the SDK."""

    key = ""
    child = None

    def start(self):
        python = SETUP / "sdk" / "bin" / "python"
        self.child = subprocess.Popen(
            [str(python), str(HERE / "gateways" / "sdk" / "caller.py"), self.upstream + "/v1"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            cwd=self.folder,
        )
        self.version = json.loads(self.child.stdout.readline())["version"]

    def memory(self):
        return None

    def stop(self):
        if self.child is None:
            return
        self.child.kill()
        self.child.wait(timeout=30)
        self.child.stdin.close()
        self.child.stdout.close()


CLASSES = {"turnkeep": Turnkeep, "litellm": LiteLlm, "portkey": Portkey, "sdk": Sdk}


def missing(gateway):
    """What is not there of a gateway's program, or none."""
    there = {
        "turnkeep": BINARY,
        "litellm": SETUP / "litellm" / "bin" / "litellm",
        "portkey": PORTKEY / "package.json",
        "sdk": SETUP / "sdk" / "bin" / "python",
    }[gateway]
    return None if there.exists() else there


def version(gateway):
    """Its version, as it says it of itself."""
    if gateway == "turnkeep":
        return subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if gateway == "portkey":
        return "@portkey-ai/gateway " + json.loads(PORTKEY.joinpath("package.json").read_text())["version"]
    package = {"litellm": "litellm", "sdk": "openai"}[gateway]
    code = f"from importlib.metadata import version; print('{package}', version('{package}'))"
    return subprocess.run([SETUP / gateway / "bin" / "python", "-c", code], capture_output=True, text=True, check=True).stdout.strip()
