"""Starts and stops the programs under test: the gateway, the lab upstream, model servers.

Every wait is for a condition (a line, an answer, an exit) with a deadline, never for a time. Logs go to files whose tails are
part of the error when something does not start.
"""

import http.client
import json
import os
import pathlib
import queue
import signal
import socket
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("TURNKEEP_BIN", ROOT / "target" / "ci" / "turnkeep"))
MODEL_PYTHON = ROOT / ".setup" / "model" / "bin" / "python"
START_SECONDS = 60


def environment(**more):
    """An environment with nothing of the caller's keys or proxies in it."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR", "HOME") if name in os.environ}
    return {**kept, "TURNKEEP_EGRESS": "loopback", "RUST_BACKTRACE": "1", **more}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(condition, what, seconds=START_SECONDS, every=0.02):
    """Polls `condition` until it gives something true, and returns that; fails with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(every)


class Process:
    """A child process with its output in a file; ends with the `with` block."""

    def __init__(self, name, command, folder, env=None, read_line=False):
        self.name = name
        self.log = pathlib.Path(folder) / f"{name}.log"
        self._lines = queue.Queue(maxsize=10_000)
        out = open(self.log, "wb")
        self.child = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if read_line else out,
            stderr=out,
            env=env or environment(),
            cwd=folder,
        )
        out.close()
        if read_line:
            threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.child.stdout:
            try:
                self._lines.put_nowait(line.decode(errors="replace").rstrip())
            except queue.Full:
                pass
        try:
            self._lines.put_nowait(None)
        except queue.Full:
            pass

    def line_with(self, text):
        """The first line on stdout that contains `text`."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                line = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"{self.name} did not print {text!r}\n{self.tail()}") from None
            if line is None:
                raise AssertionError(f"{self.name} ended before it printed {text!r}\n{self.tail()}")
            if text in line:
                return line

    def alive(self):
        return self.child.poll() is None

    def tail(self, characters=4000):
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return f"--- {self.name} (exit {self.child.poll()}) ---\n{text[-characters:]}"

    def kill(self):
        """Ends it without a chance to say goodbye."""
        self.child.kill()
        self.child.wait(timeout=START_SECONDS)

    def stop(self):
        if self.alive():
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait(timeout=START_SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Lab(Process):
    """The scriptable upstream that the binary carries."""

    def __init__(self, folder, script=None, name="lab"):
        command = [BINARY, "lab", "--listen", "127.0.0.1:0"]
        if script is not None:
            path = pathlib.Path(folder) / f"{name}.toml"
            path.write_text(script)
            command += ["--script", path]
        super().__init__(name, command, folder, read_line=True)
        self.url = self.line_with("listening on http://").split("listening on ", 1)[1].split()[0].rstrip("/")


class Model(Process):
    """A llama.cpp server with the small model."""

    def __init__(self, folder, name="model", context=2048, slots=1):
        self.port = free_port()
        here = pathlib.Path(__file__).parent / "model"
        command = [MODEL_PYTHON, here / "server.py", self.port, "--context", context, "--slots", slots]
        super().__init__(name, command, folder)
        self.url = f"http://127.0.0.1:{self.port}"
        until(self.ready, f"{name} ready\n{self.log}", seconds=120)

    def ready(self):
        if not self.alive():
            raise AssertionError(f"the model server ended\n{self.tail()}")
        try:
            return request(self.url, "GET", "/health").status == 200
        except OSError:
            return False

    def processing(self):
        """How many of its slots are at work, in its own words."""
        for line in request(self.url, "GET", "/metrics").text.splitlines():
            if line.startswith("llamacpp:requests_processing"):
                return float(line.split()[-1])
        raise AssertionError("the model server has no metric requests_processing")


class Gateway(Process):
    """`turnkeep serve` over a written config; ready when it says so."""

    KEY = "tk-e2e-caller-key-0123456789abcdef"

    def __init__(self, folder, upstreams, models, server="", name="gateway", toml="", **more):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        folder = pathlib.Path(folder)
        text = f"""
[server]
listen = "127.0.0.1:{self.port}"
{server}

[store]
url = "sqlite:{folder}/{name}.db"

[[keys]]
name = "e2e"
secret = {{ env = "E2E_CALLER_KEY" }}
scopes = ["chat", "viewer"]
"""
        for upstream in upstreams:
            text += f'\n[[upstreams]]\nname = "{upstream["name"]}"\nkind = "{upstream["kind"]}"\n'
            text += f'base_url = "{upstream["base_url"]}"\n{upstream.get("more", "")}\n'
            for account in upstream.get("accounts", ["only"]):
                text += f'[[upstreams.accounts]]\nname = "{account}"\nsecret = {{ env = "E2E_UPSTREAM_KEY" }}\n'
        for model in models:
            # A route without a name of its own passes the client's on.
            target = lambda name: f', model = "{name}"' if name else ""  # noqa: E731
            routes = ", ".join(f'{{ upstream = "{up}"{target(name)} }}' for up, name in model["routes"])
            text += f'\n[[models]]\nname = "{model["name"]}"\nroutes = [{routes}]\n'
        # What stands in no upstream's list; it may name the gateway's own URL.
        text += toml.replace("{url}", self.url)
        config = folder / f"{name}.toml"
        config.write_text(text)
        env = environment(E2E_CALLER_KEY=self.KEY, E2E_UPSTREAM_KEY="upstream-e2e-key-0123456789", **more)
        super().__init__(name, [BINARY, "serve", "--config", config], folder, env=env)
        until(self.ready, f"GET /readyz answers 200\n{self.log}")

    def counters(self):
        """Its own counters, as an operator sees them."""
        answer = request(self.url, "GET", "/dashboard/api/connect-metrics", headers=[("authorization", f"Bearer {self.KEY}")])
        assert answer.status == 200, answer
        return answer.json()

    def ready(self):
        if not self.alive():
            raise AssertionError(f"the gateway ended\n{self.tail()}")
        try:
            return request(self.url, "GET", "/readyz").status == 200
        except OSError:
            return False


class Answer:
    """A whole HTTP answer."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {name.lower(): value for name, value in headers}
        self.body = body

    @property
    def text(self):
        return self.body.decode("utf-8", errors="replace")

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.headers} {self.text[:2000]}"


def request(url, method, target, body=None, headers=(), timeout=60):
    """One request on a connection of its own, body bytes as they are."""
    host, port = url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=timeout)
    try:
        connection.putrequest(method, target, skip_accept_encoding=True)
        names = {name.lower() for name, _ in headers}
        for name, value in headers:
            connection.putheader(name, value)
        if body is not None and "content-length" not in names and "transfer-encoding" not in names:
            connection.putheader("content-length", str(len(body)))
        connection.endheaders()
        if body:
            connection.send(body)
        answer = connection.getresponse()
        return Answer(answer.status, answer.getheaders(), answer.read())
    finally:
        connection.close()
