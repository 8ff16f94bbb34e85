"""A Cascade server over a local llama.cpp server: each conversation keeps its prompt cache.

llama.cpp's `llama-server` has slots, and a slot keeps what it has read of a prompt. This server gives each conversation a
slot of its own for as long as there are enough, so a turn that goes on costs the reading of what is new, and the gateway
sends only that. Any server with OpenAI's chat endpoint will do; `cache_prompt` and `id_slot` are llama.cpp's own.

    pip install connectrpc httpx uvicorn
    pip install grpcio-tools protoc-gen-py protoc-gen-connectrpc       # to make gen/ from the schema, once:
    python -m grpc_tools.protoc -I ../../proto --py_out=gen --connectrpc_out=gen \
        turnkeep/connect/v1/chat.proto turnkeep/cascade/v1/cascade.proto

    llama-server -m model.gguf --parallel 4 --jinja --port 8080
    python llama_server.py --llama http://127.0.0.1:8080 --slots 4 --listen 127.0.0.1:9100

docs/upstreams/cascade.md tells how the gateway is pointed at it, or starts it by itself: then TURNKEEP_LISTEN says where to
listen and TURNKEEP_SECRET is the bearer token that is asked for.
"""

import argparse
import asyncio
import json
import os
import secrets
import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "gen"))

import httpx
import uvicorn
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from protobuf import Oneof
from turnkeep.cascade.v1 import cascade_pb as pb
from turnkeep.cascade.v1.cascade_connect import CascadeService, CascadeServiceASGIApplication
from turnkeep.connect.v1 import chat_pb as chat

INSTANCE = secrets.token_bytes(16)  # drawn anew by every process
MAX_CONVERSATIONS = 256  # beyond it the one that has been used least lately is forgotten
ROLES = {chat.Role.SYSTEM: "system", chat.Role.USER: "user", chat.Role.ASSISTANT: "assistant"}
FINISHES = {
    "stop": chat.Finish.Reason.STOP,
    "length": chat.Finish.Reason.LENGTH,
    "tool_calls": chat.Finish.Reason.TOOL_CALLS,
}


class Refused(Exception):
    def __init__(self, reason, message, retry_after_ms=0):
        super().__init__(message)
        self.refusal = pb.Refusal(reason=reason, message=message, retry_after_ms=retry_after_ms)


class Conversation:
    def __init__(self, model, slot):
        self.model, self.slot = model, slot
        self.messages, self.tools = [], []  # in OpenAI's form
        self.steps = []  # the log: one entry for each step, the turn that was taken among them
        self.working = None  # the task of the turn under way
        self.sent_at = None  # the position at which it was sent
        self.grown = asyncio.Condition()

    async def add(self, what=None):
        """Adds a step and wakes whoever watches. The step of a turn that was taken has nothing in it."""
        self.append(what)
        await self.wake()

    def append(self, what):
        self.steps.append(pb.Step(offset=len(self.steps), what=what))

    async def wake(self):
        async with self.grown:
            self.grown.notify_all()

    async def event(self, field, value):
        await self.add(Oneof("event", chat.ChatEvent(event=Oneof(field, value))))


def plain(message):
    """A message in OpenAI's form; results of tools are messages of their own there."""
    text, calls, results = [], [], []
    for part in message.parts:
        match part.body:
            case Oneof(field="text" | "refusal", value=value):
                text.append(value)
            case Oneof(field="tool_call", value=call):
                function = {"name": call.name, "arguments": call.arguments_json}
                calls.append({"id": call.id, "type": "function", "function": function})
            case Oneof(field="tool_result", value=result):
                said = "".join(p.body.value for p in result.content if p.body and p.body.field == "text")
                results.append({"role": "tool", "tool_call_id": result.id, "content": said})
            case Oneof(field="thinking" | "redacted_thinking"):
                pass  # the model's template has no place for it
            case other:
                what = other.field if other else "nothing"
                raise Refused(pb.Reason.INVALID, f"this server takes text and tools, and no {what}")
    if text or calls or not results:
        one = {"role": ROLES.get(message.role, "user"), "content": "".join(text)}
        results.append(one | ({"tool_calls": calls} if calls else {}))
    return results


def settings(turn):
    """A turn's settings in OpenAI's form."""
    out = {}
    if turn.max_output_tokens:
        out["max_tokens"] = turn.max_output_tokens
    if turn.stop:
        out["stop"] = list(turn.stop)
    if turn.sampling:
        for name in ("temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty"):
            if turn.sampling.has_field(name):
                out[name] = getattr(turn.sampling, name)
    return out


class Server(CascadeService):
    def __init__(self, llama, slots):
        self.llama = httpx.AsyncClient(base_url=llama, timeout=httpx.Timeout(None, connect=5))
        self.slots, self.begun = slots, 0
        self.conversations = {}  # the least lately used first

    def find(self, name):
        found = self.conversations.pop(name, None)
        if found is None:
            raise Refused(pb.Reason.CONVERSATION, "there is no such conversation")
        self.conversations[name] = found
        return found

    def at(self, name, conversation):
        return pb.Conversation(conversation=name, position=len(conversation.steps), instance=INSTANCE)

    async def health(self, request, ctx):
        try:
            (await self.llama.get("/v1/models")).raise_for_status()
        except httpx.HTTPError as error:
            raise ConnectError(Code.UNAVAILABLE, f"llama.cpp does not answer: {error}") from error
        return pb.HealthResponse(instance=INSTANCE)

    async def start(self, request, ctx):
        while len(self.conversations) >= MAX_CONVERSATIONS:
            await self.stop(self.conversations.pop(next(iter(self.conversations))))
        name = secrets.token_urlsafe(24)
        conversation = self.conversations[name] = Conversation(request.model, self.begun % self.slots)
        self.begun += 1
        return pb.StartResponse(outcome=Oneof("started", self.at(name, conversation)))

    async def send(self, request, ctx):
        try:
            conversation = self.find(request.conversation)
            if request.instance != INSTANCE:
                raise Refused(pb.Reason.CONVERSATION, "another process began this conversation")
            if conversation.working:
                raise Refused(pb.Reason.BUSY, "another turn is under way")
            if request.position != len(conversation.steps):
                raise Refused(pb.Reason.POSITION, f"the conversation stands at {len(conversation.steps)}")
            new = [line for message in request.turn.messages for line in plain(message)]
        except Refused as refused:
            return pb.SendResponse(outcome=Oneof("refused", refused.refusal))
        if request.turn.tools:
            conversation.tools = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": json.loads(tool.parameters_json_schema or "{}"),
                    },
                }
                for tool in request.turn.tools
            ]
        conversation.messages += new
        conversation.sent_at = request.position
        conversation.working = asyncio.create_task(self.answer(conversation, settings(request.turn)))
        await conversation.add()
        return pb.SendResponse(outcome=Oneof("taken", pb.Taken(offset=request.position + 1)))

    async def answer(self, conversation, wanted):
        """Asks llama.cpp and writes its answer down, step by step, whoever watches."""
        last = Oneof("failed", pb.Refusal(reason=pb.Reason.CANCELLED, message="cancelled"))
        try:
            await self.generate(conversation, wanted)
            last = Oneof("final", pb.Final())
        except Refused as refused:
            last = Oneof("failed", refused.refusal)
        except (httpx.HTTPError, json.JSONDecodeError, KeyError) as error:
            last = Oneof("failed", pb.Refusal(reason=pb.Reason.UNAVAILABLE, message=f"llama.cpp: {error!r}"))
        finally:
            # Both at once, the step first: who finds no turn under way finds its last step, and the next turn finds its place.
            conversation.append(last)
            conversation.working = None
            await asyncio.shield(conversation.wake())

    async def generate(self, conversation, wanted):
        body = wanted | {
            "model": conversation.model,
            "messages": conversation.messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            "cache_prompt": True,
            "id_slot": conversation.slot,
        }
        if conversation.tools:
            body["tools"] = conversation.tools
        said, calls, open_block, blocks, finish = "", [], None, 0, None

        async def opens(kind, value):
            nonlocal open_block, blocks
            if open_block is not None:
                await conversation.event("block_stop", chat.BlockStop(block=open_block))
            open_block, blocks = blocks, blocks + 1
            await conversation.event("block_start", chat.BlockStart(block=open_block, kind=Oneof(kind, value)))

        async def grows(field, text):
            await conversation.event("delta", chat.Delta(block=open_block, delta=Oneof(field, text)))

        async with self.llama.stream("POST", "/v1/chat/completions", json=body) as reply:
            if reply.status_code != 200:
                raise refusal(reply.status_code, (await reply.aread()).decode(errors="replace"))
            await conversation.event("start", chat.Start(model=conversation.model))
            async for line in reply.aiter_lines():
                if not line.startswith("data:") or line == "data: [DONE]":
                    continue
                chunk = json.loads(line[5:])
                if usage := chunk.get("usage"):
                    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
                    counts = chat.Usage(
                        input=usage["prompt_tokens"] - cached, cache_read=cached, output=usage["completion_tokens"]
                    )
                    await conversation.event("usage", counts)
                for choice in chunk.get("choices", []):
                    delta = choice.get("delta") or {}
                    finish = choice.get("finish_reason") or finish
                    if text := delta.get("content"):
                        if not said:
                            await opens("text", chat.TextBlock())
                        said += text
                        await grows("text", text)
                    for call in delta.get("tool_calls") or []:
                        function = call.get("function") or {}
                        if call["index"] == len(calls):
                            made = {"id": call.get("id") or secrets.token_hex(12), "type": "function"}
                            calls.append(made | {"function": {"name": function["name"], "arguments": ""}})
                            block = chat.ToolCallBlock(id=calls[-1]["id"], name=function["name"])
                            await opens("tool_call", block)
                        calls[-1]["function"]["arguments"] += function.get("arguments") or ""
                        await grows("arguments", function.get("arguments") or "")
        if finish is None:
            raise Refused(pb.Reason.INTERNAL, "llama.cpp's answer has no end")
        if open_block is not None:
            await conversation.event("block_stop", chat.BlockStop(block=open_block))
        reason = FINISHES.get(finish, chat.Finish.Reason.STOP)
        await conversation.event("finish", chat.Finish(reason=reason))
        answer = {"role": "assistant", "content": said}
        conversation.messages.append(answer | ({"tool_calls": calls} if calls else {}))

    async def watch(self, request, ctx):
        try:
            conversation = self.find(request.conversation)
        except Refused as refused:
            raise ConnectError(Code.NOT_FOUND, f"conversation: {refused}") from refused
        at = request.offset
        while True:
            for step in conversation.steps[at:]:
                at += 1
                yield pb.WatchResponse(what=Oneof("step", step))
            if not conversation.working and at >= len(conversation.steps):
                return
            async with conversation.grown:
                try:
                    grown = conversation.grown.wait_for(lambda: at < len(conversation.steps))
                    await asyncio.wait_for(grown, 15)
                except TimeoutError:
                    yield pb.WatchResponse(what=Oneof("working", pb.Working()))

    async def position(self, request, ctx):
        try:
            here = self.at(request.conversation, self.find(request.conversation))
            return pb.PositionResponse(outcome=Oneof("at", here))
        except Refused as refused:
            return pb.PositionResponse(outcome=Oneof("refused", refused.refusal))

    async def cancel(self, request, ctx):
        conversation = self.conversations.get(request.conversation)
        if conversation and (request.close or conversation.sent_at == request.position):
            await self.stop(conversation)
        if request.close:
            self.conversations.pop(request.conversation, None)
        return pb.CancelResponse()

    async def stop(self, conversation):
        """Stops the turn under way: the connection to llama.cpp closes, and its slot stops generating."""
        if task := conversation.working:
            task.cancel()
            await asyncio.wait([task])
            if conversation.working is task:  # it had not come to its first line
                conversation.working = None
                await conversation.add(Oneof("failed", pb.Refusal(reason=pb.Reason.CANCELLED, message="cancelled")))


def refusal(status, text):
    if status == 400 and "context" in text:
        return Refused(pb.Reason.CONTEXT_TOO_LONG, text[:500])
    if status in (400, 404, 422):
        return Refused(pb.Reason.INVALID, text[:500])
    if status in (429, 503):
        return Refused(pb.Reason.OVERLOADED, text[:500], retry_after_ms=1000)
    return Refused(pb.Reason.INTERNAL, f"status {status}: {text[:500]}")


def guarded(app, token):
    """Asks for the bearer token."""

    async def inner(scope, receive, send):
        headers = dict(scope.get("headers") or [])
        given = headers.get(b"authorization", b"").decode(errors="replace")
        if scope["type"] == "http" and not secrets.compare_digest(given.encode(), f"Bearer {token}".encode()):
            head = {"type": "http.response.start", "status": 401, "headers": [(b"content-type", b"application/json")]}
            await send(head)
            return await send({"type": "http.response.body", "body": b'{"code":"unauthenticated","message":"no"}'})
        return await app(scope, receive, send)

    return inner


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--llama", default="http://127.0.0.1:8080", help="llama.cpp's address")
    words.add_argument("--slots", type=int, default=1, help="as llama-server's --parallel")
    listen = os.environ.get("TURNKEEP_LISTEN", "127.0.0.1:9100")
    words.add_argument("--listen", default=listen, help="HOST:PORT")
    given = words.parse_args()
    host, _, port = given.listen.rpartition(":")
    app = CascadeServiceASGIApplication(Server(given.llama.rstrip("/"), max(1, given.slots)))
    token = os.environ.get("TURNKEEP_SECRET")
    if token:
        # Whoever started this process holds its standard input, and wants it gone when that closes.
        threading.Thread(target=lambda: (sys.stdin.read(), os.kill(os.getpid(), signal.SIGTERM)), daemon=True).start()
    uvicorn.run(guarded(app, token) if token else app, host=host, port=int(port), log_level="warning")


if __name__ == "__main__":
    main()
