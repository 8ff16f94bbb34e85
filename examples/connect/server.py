"""A private backend behind Turnkeep: the service of proto/turnkeep/connect/v1/chat.proto, over Connect and gRPC.

    pip install connectrpc==0.13.0 hypercorn grpcio-tools
    python examples/connect/server.py --port 9100                          # says what it was told
    python examples/connect/server.py --port 9100 --openai http://127.0.0.1:8080/v1   # asks a llama.cpp, vLLM, ...

It carries text, tools and tool calls; an image or a file is refused, as this backend has no use for them.
With BACKEND_SECRET in its environment it serves nobody who does not bring that; OPENAI_API_KEY is for the server it asks.
docs/upstreams/connect.md tells the rules of the service.
"""

import argparse
import asyncio
import hmac
import importlib
import json
import os
import pathlib
import sys
import tempfile
import urllib.error
import urllib.request

from connectrpc.code import Code
from connectrpc.compat import google_protobuf_codecs
from connectrpc.errors import ConnectError
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from connectrpc.server import ConnectASGIApplication, Endpoint
from grpc_tools import protoc
from hypercorn.asyncio import serve
from hypercorn.config import Config

SERVICE = "turnkeep.connect.v1.ChatService"
SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "proto"


def messages():
    """The schema's messages, compiled on the way; a real server keeps the generated module."""
    out = tempfile.mkdtemp(prefix="turnkeep-")
    schema = "turnkeep/connect/v1/chat.proto"
    if protoc.main(["protoc", f"-I{SCHEMAS}", f"--python_out={out}", schema]) != 0:
        sys.exit(f"{SCHEMAS / schema} does not compile")
    sys.path.insert(0, out)
    return importlib.import_module("turnkeep.connect.v1.chat_pb2")


pb = messages()


def event(**kind):
    return pb.ChatEvent(**kind)


def finish(reason):
    return event(finish=pb.Finish(reason=pb.Finish.Reason.Value(f"REASON_{reason}")))


def text_of(parts):
    """The parts as one text; what is none is refused."""
    for part in parts:
        if part.WhichOneof("body") not in ("text", "refusal", "thinking", "tool_call", "tool_result"):
            raise ConnectError(Code.INVALID_ARGUMENT, f"this backend takes no {part.WhichOneof('body')}")
        text_of(part.tool_result.content)
    return "".join(part.text or part.refusal for part in parts)


class Echo:
    """Says the last text of the user, word by word."""

    async def chat(self, request):
        said = [text_of(message.parts) for message in request.messages]  # of all: what is not read is refused too
        words = (said[-1] if said else "").split(" ")
        yield event(start=pb.Start(model=request.model, usage=pb.Usage(input=len(words))))
        yield event(block_start=pb.BlockStart(block=0, text=pb.TextBlock()))
        for number, word in enumerate(words):
            yield event(delta=pb.Delta(block=0, text=word if number == 0 else f" {word}"))
        yield event(block_stop=pb.BlockStop(block=0))
        yield finish("STOP")
        yield event(usage=pb.Usage(input=len(words), output=len(words)))


class OpenAi:
    """Asks a server that speaks Chat Completions."""

    FINISHES = {"stop": "STOP", "length": "LENGTH", "tool_calls": "TOOL_CALLS", "content_filter": "REFUSAL"}
    # A refused key is this server's own trouble: `unauthenticated` would say that the gateway's is.
    ERRORS = {400: Code.INVALID_ARGUMENT, 404: Code.NOT_FOUND, 429: Code.RESOURCE_EXHAUSTED}

    def __init__(self, url):
        self.url = url.rstrip("/") + "/chat/completions"

    def body(self, request):
        said = []
        for message in request.messages:
            role = {pb.ROLE_SYSTEM: "system", pb.ROLE_ASSISTANT: "assistant"}.get(message.role, "user")
            calls = [part.tool_call for part in message.parts if part.HasField("tool_call")]
            results = [part.tool_result for part in message.parts if part.HasField("tool_result")]
            said += [{"role": "tool", "tool_call_id": r.id, "content": text_of(r.content)} for r in results]
            text = text_of(message.parts)
            if text or not results:
                said.append({"role": role, "content": text})
            if calls:
                function = [{"name": call.name, "arguments": call.arguments_json} for call in calls]
                said[-1]["tool_calls"] = [
                    {"id": call.id, "type": "function", "function": f} for call, f in zip(calls, function)
                ]
        body = {"model": request.model, "messages": said, "stream": True, "stream_options": {"include_usage": True}}
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": json.loads(tool.parameters_json_schema or "{}"),
                    },
                }
                for tool in request.tools
            ]
        choice = request.tool_choice
        if len(choice.only) == 1 and choice.mode == pb.ToolChoice.MODE_REQUIRED:
            body["tool_choice"] = {"type": "function", "function": {"name": choice.only[0]}}
        elif choice.only:
            raise ConnectError(Code.INVALID_ARGUMENT, "this backend cannot choose among some of the tools")
        elif request.HasField("tool_choice"):
            body["tool_choice"] = {1: "auto", 2: "none", 3: "required"}.get(choice.mode, "auto")
        if request.output.kind == pb.OutputForm.KIND_JSON:
            body["response_format"] = {"type": "json_object"}
        elif request.output.kind == pb.OutputForm.KIND_JSON_SCHEMA:
            form = {"name": request.output.name or "answer", "schema": json.loads(request.output.json_schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if request.HasField("max_output_tokens"):
            body["max_tokens"] = request.max_output_tokens
        if request.sampling.HasField("temperature"):
            body["temperature"] = request.sampling.temperature
        if request.stop:
            body["stop"] = list(request.stop)
        return json.dumps(body).encode()

    async def chat(self, request):
        headers = {"content-type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            headers["authorization"] = f"Bearer {key}"
        asked = urllib.request.Request(self.url, self.body(request), headers)
        try:
            reply = await asyncio.to_thread(urllib.request.urlopen, asked)
        except urllib.error.HTTPError as error:
            code = self.ERRORS.get(error.code, Code.INTERNAL if error.code < 502 else Code.UNAVAILABLE)
            raise ConnectError(code, error.read(2000).decode(errors="replace")) from error
        except OSError as error:
            raise ConnectError(Code.UNAVAILABLE, str(error)) from error
        with reply:
            reason, blocks = None, {}  # The open blocks: "text", or a call's index, with their numbers.
            yield event(start=pb.Start(model=request.model))
            while line := await asyncio.to_thread(reply.readline):
                if not line.startswith(b"data: {"):
                    continue
                chunk = json.loads(line[6:])
                if usage := chunk.get("usage"):
                    tokens = (usage["prompt_tokens"], usage["completion_tokens"])
                    yield event(usage=pb.Usage(input=tokens[0], output=tokens[1]))
                for choice in chunk.get("choices", []):
                    reason = choice.get("finish_reason") or reason
                    delta = choice.get("delta", {})
                    if text := delta.get("content"):
                        if "text" not in blocks:
                            blocks["text"] = len(blocks)
                            yield event(block_start=pb.BlockStart(block=blocks["text"], text=pb.TextBlock()))
                        yield event(delta=pb.Delta(block=blocks["text"], text=text))
                    for call in delta.get("tool_calls") or []:
                        index, function = call["index"], call.get("function", {})
                        if index not in blocks:
                            blocks[index] = len(blocks)
                            opened = pb.ToolCallBlock(id=call["id"], name=function["name"])
                            yield event(block_start=pb.BlockStart(block=blocks[index], tool_call=opened))
                        if arguments := function.get("arguments"):
                            yield event(delta=pb.Delta(block=blocks[index], arguments=arguments))
            if reason is None:
                raise ConnectError(Code.UNAVAILABLE, "the model's server stopped in the middle")
            for block in blocks.values():
                yield event(block_stop=pb.BlockStop(block=block))
            yield finish(self.FINISHES.get(reason, "STOP"))


def application(backend, secret):
    async def chat(request, ctx):
        given = ctx.request_headers.get("authorization", "")
        if secret and not hmac.compare_digest(given.encode(), f"Bearer {secret}".encode()):
            raise ConnectError(Code.UNAUTHENTICATED, "the gateway's secret is not ours")
        async for step in backend.chat(request):
            yield step

    method = MethodInfo(
        name="Chat",
        service_name=SERVICE,
        input=pb.ChatRequest,
        output=pb.ChatEvent,
        idempotency_level=IdempotencyLevel.UNKNOWN,
        stream_type=StreamType.SERVER_STREAM,
    )

    class Application(ConnectASGIApplication):
        path = f"/{SERVICE}"

    endpoints = {f"/{SERVICE}/Chat": Endpoint.server_stream(method, chat)}
    # The gateway sends up to 16 MiB.
    return Application(
        service=backend, endpoints=lambda _: endpoints, codecs=google_protobuf_codecs(), read_max_bytes=16 << 20
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=9100)
    parser.add_argument("--openai", metavar="URL", help="a Chat Completions server to ask, with /v1")
    args = parser.parse_args()
    config = Config()
    config.bind = [f"127.0.0.1:{args.port}"]
    backend = OpenAi(args.openai) if args.openai else Echo()
    asyncio.run(serve(application(backend, os.environ.get("BACKEND_SECRET")), config))
