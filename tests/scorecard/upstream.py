"""The scripted upstream: some accounts behind one address, told per request what to do, and a meter of all it was asked.

It is not the product's own lab, so that peers and Turnkeep are judged by the same stranger. An account is the credential that a
request carries. Scripts speak of roles, because gateways choose their first account differently: "first" is whichever of the two
primary accounts is asked first, "other" the second one, "fallback" and "larger" the accounts of those names.
"""

import asyncio
import json
import re
import time

import dialects
import http1

# The credentials; gateways are configured with them.
PRIMARY = ("account-a", "account-b")
NAMED = {"account-fallback": "fallback", "account-larger": "larger"}
OPEN_LIMIT = 200


class Upstream:
    """Serves until closed. `meter` has an entry for each request, with times in seconds since `begin`."""

    def __init__(self, dialect):
        self.dialect = dialect
        self.meter, self.whole_meter, self.script, self.used = [], [], {}, {}
        self.roles, self.attempts, self.healed = {}, 0, None
        self.server, self.port, self.tasks = None, None, set()
        self.began = time.monotonic()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self.server.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def begin(self, script, began):
        """A new script; the meter starts anew."""
        self.script, self.used, self.meter, self.roles, self.began = script, {}, [], {}, began
        self.healed = None

    def heal(self):
        """From here on every request is answered; the meter goes on."""
        self.script, self.used = {}, {}
        self.healed = self.healed if self.healed is not None else len(self.meter)

    def now(self):
        return round(time.monotonic() - self.began, 3)

    def open(self):
        """The requests whose answer neither has ended nor was left."""
        return [entry["n"] for entry in self.meter if entry["ended"] is None]

    def role(self, account):
        if account in NAMED:
            return NAMED[account]
        if account not in self.roles:
            self.roles[account] = "other" if self.roles else "first"
        return self.roles[account]

    def step(self, role):
        """What the script says of the role's next request: a list's last step goes on for ever, or it begins anew."""
        name = "any" if "any" in self.script and role in ("first", "other") else role
        steps = self.script.get(name) or [{"do": "answer"}]
        at = self.used.get(name, 0)
        self.used[name] = at + 1
        return steps[at % len(steps)] if self.script.get("cycle") else steps[min(at, len(steps) - 1)]

    async def serve(self, reader, writer):
        task = asyncio.current_task()
        self.tasks.add(task)
        wire = http1.Wire(reader, writer)
        try:
            if len(self.tasks) > OPEN_LIMIT:
                return
            while not wire.ended:
                await self.one(wire, *await http1.read_request(wire))
        except (http1.Gone, ValueError, KeyError, asyncio.CancelledError):
            pass
        finally:
            self.tasks.discard(task)
            wire.close()

    async def one(self, wire, method, target, headers, body):
        presented = re.search(r"account-[a-z]+", " ".join(headers.get(n, "") for n in ("authorization", "x-api-key", "x-goog-api-key")))
        if method != "POST" or presented is None:
            await wire.send(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            return
        asked = json.loads(body)
        role = self.role(presented.group())
        self.attempts += 1
        entry = {
            "n": self.attempts,
            "account": presented.group(),
            "role": role,
            "at": self.now(),
            "stream": dialects.asked_for_stream(target, asked),
            "did": None,
            "words": 0,
            "completed": False,
            "billed": None,
            "ended": None,
            "by": None,
        }
        self.meter.append(entry)
        self.whole_meter.append(entry)
        step = self.step(role)
        entry["did"] = step["do"] + (f" {step['status']}" if "status" in step else "") + (f", then {step['then']}" if "then" in step else "")
        # The peer may leave at any moment, so the connection is watched while the answer is written.
        watch = asyncio.ensure_future(wire.fill())
        play = asyncio.ensure_future(self.play(wire, entry, step))
        try:
            await asyncio.wait({watch, play}, return_when=asyncio.FIRST_COMPLETED)
            if not play.done() and not wire.ended:
                # Something came that is not an end: the next request, which waits.
                await play
            if not play.done():
                entry["by"] = "peer"
                play.cancel()
                raise http1.Gone()
            play.result()
        except http1.Gone:
            entry["by"] = entry["by"] or "peer"
            raise
        finally:
            if entry["ended"] is None:
                entry["ended"] = self.now()
                entry["by"] = entry["by"] or "us"
            for task in (watch, play):
                if not task.done():
                    task.cancel()
            await asyncio.gather(watch, play, return_exceptions=True)

    async def play(self, wire, entry, step):
        """Does what the step says; raises `Gone` where that ends the connection."""
        answer = dialects.Answer(self.dialect, entry["n"])
        what = step["do"]
        if what == "silent":
            await asyncio.Event().wait()
        if what == "reset":
            entry["ended"], entry["by"] = self.now(), "us"
            wire.reset()
            raise http1.Gone()
        await http1.pause(step.get("first", 0))
        if what == "error":
            status = step["status"]
            more = {"retry-after": str(step["retry_after"])} if "retry_after" in step else {}
            await self.whole(wire, status, dialects.error(self.dialect, status, step["kind"]), more)
            return
        if what == "blocked":
            # Gemini says so in an answer of its own; the others refuse the request.
            if self.dialect == "gemini":
                said = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 11, "totalTokenCount": 11}}
                if entry["stream"]:
                    await self.begin_stream(wire)
                    await wire.send(http1.chunk(dialects.event(said)) + http1.LAST_CHUNK)
                else:
                    await self.whole(wire, 200, said)
            else:
                await self.whole(wire, 400, dialects.error(self.dialect, 400, "policy"))
            return
        words, finish = step.get("words", 20), step.get("finish", "stop")
        entry["of"] = words
        if not entry["stream"]:
            body = answer.plain(words, finish)
            entry["words"] = words
            await self.whole(wire, 200, body)
            self.bill(entry, answer)
            return
        await self.begin_stream(wire)
        await wire.send(http1.chunk(b": here\n\n") if self.dialect == "gemini" else http1.chunk(answer.head()))
        then = step.get("then")
        if then:
            for _ in range(step.get("after", 0)):
                await self.word(wire, entry, answer, step)
            await self.break_off(wire, entry, answer, then)
            return
        for _ in range(words - 1):
            await self.word(wire, entry, answer, step)
        # The last word, the terminal and the end of the body are one write, so that a caller can leave inside it.
        tail = answer.delta(step.get("tail", step.get("size", 0)))
        entry["words"] = answer.words
        await wire.send(http1.chunk(tail + answer.end(finish)) + http1.LAST_CHUNK)
        self.bill(entry, answer)

    async def word(self, wire, entry, answer, step):
        await wire.send(http1.chunk(answer.delta(step.get("size", 0))))
        entry["words"] = answer.words
        # Words are apart, so that a gateway has each of them before the next, and before a break.
        await http1.pause(step.get("pause", 0.01))

    async def break_off(self, wire, entry, answer, then):
        if then == "stall":
            await asyncio.Event().wait()
        if then == "malformed":
            await wire.send(http1.chunk(b'data: {"choices": [{"delta": {"content": "\n\n') + http1.LAST_CHUNK)
        elif then == "no terminal":
            await wire.send(http1.LAST_CHUNK)
        elif then == "reset":
            entry["ended"], entry["by"] = self.now(), "us"
            wire.reset()
            raise http1.Gone()
        else:
            entry["ended"], entry["by"] = self.now(), "us"
            raise http1.Gone()

    def bill(self, entry, answer):
        usage = answer.words
        entry["completed"], entry["billed"] = True, [dialects.PROMPT_TOKENS, usage]

    async def begin_stream(self, wire):
        await wire.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n")

    async def whole(self, wire, status, body, headers=None):
        data = dialects.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} S", "content-type: application/json", f"content-length: {len(data)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        await wire.send("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
