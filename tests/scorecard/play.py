"""Plays one scenario against one gateway and dialect, and gives its record: all that the checker may look at.

Each scenario has an upstream, a gateway and a folder of its own, so that none inherits the standing or the memory of another.
"""

import asyncio
import contextlib
import itertools
import json
import tempfile
import time

import client
import http1
import launch
import scenarios
import upstream

PROBE = {"stream": False}
SAMPLE_SECONDS = 0.25
WARM_UP_SECONDS = 60


class Caller:
    """Makes calls through the gateway, as raw bytes; each with a text of its own unless it is the same request again."""

    def __init__(self, running, dialect):
        self.running, self.dialect, self.numbers = running, dialect, itertools.count(1)

    def text(self, call):
        return f"the same request {call['same']}" if "same" in call else f"turn {next(self.numbers)} of the scorecard"

    async def ask(self, call, began):
        extra = self.running.extra
        return await client.ask(self.running.port, self.dialect, self.running.key, call, self.text(call), extra, began)

    def close(self):
        pass


class SdkCaller(Caller):
    """The same over the pipes of the child that has the SDK."""

    def __init__(self, running, dialect):
        super().__init__(running, dialect)
        self.waiting, self.ids = {}, itertools.count(1)
        self.loop = asyncio.get_running_loop()
        self.reader = self.loop.run_in_executor(None, self.read)

    def read(self):
        for line in self.running.child.stdout:
            answer = json.loads(line)
            self.loop.call_soon_threadsafe(self.settle, answer)

    def settle(self, answer):
        future = self.waiting.pop(answer["id"], None)
        if future is not None and not future.done():
            future.set_result(answer["record"])

    async def ask(self, call, began):
        number, future = next(self.ids), self.loop.create_future()
        self.waiting[number] = future
        job = {"id": number, "call": call, "text": self.text(call), "began": began}
        self.running.child.stdin.write(json.dumps(job).encode() + b"\n")
        self.running.child.stdin.flush()
        return await future


async def sample(running, found):
    """Keeps the largest resident memory seen."""
    while True:
        now = running.memory()
        if now is not None:
            found["peak"] = max(found["peak"], now)
        await http1.pause(SAMPLE_SECONDS)


async def calls_of(scenario, caller, up, began):
    records, running = [], []
    for call in scenario.calls:
        if call.get("after_reset"):
            up.heal()
        await http1.pause(call.get("wait", 0))
        if "at" in call:
            await http1.pause(max(0.0, began + call["at"] - time.monotonic()))
            running.append(asyncio.ensure_future(caller.ask(call, began)))
        else:
            records.append(await caller.ask(call, began))
    return records + list(await asyncio.gather(*running))


async def rest(up, seconds):
    """Waits until nothing is open at the upstream, or the time is over."""
    deadline = time.monotonic() + seconds
    while up.open() and time.monotonic() < deadline:
        await http1.pause(0.05)


async def through(scenario, running, caller, up, is_gateway):
    """The scenario itself, on a gateway that is up and warm."""
    began = time.monotonic()
    up.begin(scenario.script, began)
    before = running.memory()
    memory = {"before": before, "peak": before, "after": before} if before is not None else None
    watch = asyncio.ensure_future(sample(running, memory)) if memory else None
    try:
        calls = await calls_of(scenario, caller, up, began)
        await rest(up, scenario.settle)
        record = {"calls": calls, "meter": list(up.meter), "open": up.open(), "memory": memory, "probe": None, "published": {}}
        # How many requests had come when the upstream was first told to be well again.
        record["healed"] = len(up.meter) if up.healed is None else up.healed
        if is_gateway:
            up.heal()
            seen = len(up.meter)
            record["probe"] = await caller.ask(PROBE, began)
            record["probe_meter"] = up.meter[seen:]
            await rest(up, 3)
            record["open"] = up.open()
            record["published"]["in_flight"] = await asyncio.to_thread(running.in_flight)
        if memory:
            memory["after"] = running.memory() or 0.0
    finally:
        if watch:
            watch.cancel()
    record["seconds"] = round(time.monotonic() - began, 1)
    return record


async def play(gateway, dialect, scenario):
    is_gateway = gateway != "sdk"
    if not is_gateway and scenario.sdk:
        return {"not_applicable": scenario.sdk}
    with tempfile.TemporaryDirectory(prefix=f"scorecard-{gateway}-") as folder:
        async with upstream.Upstream(dialect) as up:
            running = launch.CLASSES[gateway](folder, up.port, dialect)
            starting = asyncio.ensure_future(asyncio.to_thread(running.start))
            try:
                await asyncio.shield(starting)
                caller = (Caller if is_gateway else SdkCaller)(running, dialect)
                if is_gateway:
                    # What is loaded with the first turns is not the scenario's memory.
                    for call in ({"stream": False}, {"stream": True}):
                        await asyncio.wait_for(caller.ask(call, time.monotonic()), WARM_UP_SECONDS)
                try:
                    within = scenarios.SCENARIO_SECONDS
                    record = await asyncio.wait_for(through(scenario, running, caller, up, is_gateway), within)
                except asyncio.TimeoutError:
                    record = {"overrun": True, "seconds": within, "meter": up.meter}
            finally:
                # A start that is still under way ends first, so that no process is left behind it.
                running.abandoned = True
                await asyncio.wait({starting})
                await asyncio.to_thread(running.stop)
            if is_gateway and not record.get("overrun"):
                with contextlib.suppress(OSError):
                    record["published"]["ledger"] = await asyncio.to_thread(running.ledger)
                record["whole_meter"] = list(up.whole_meter)
    return record
