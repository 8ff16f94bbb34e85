// A backend of the published Connect service by @connectrpc/connect-node: Connect over HTTP/1.1 on one port, gRPC over HTTP/2 on
// another. DESCRIPTORS is the schema as `xtask proto --descriptors` writes it. It prints {"http1":PORT,"http2":PORT}, and one JSON
// line for each request and each that is cancelled.
import { createServer } from "node:http";
import { createServer as createServer2 } from "node:http2";
import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary, toJson } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";

const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(process.env.DESCRIPTORS)));
const service = registry.getService("turnkeep.connect.v1.ChatService");
const request = registry.getMessage("turnkeep.connect.v1.ChatRequest");
const tell = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const step = (kind, value) => ({ event: { case: kind, value } });

async function* chat(asked, context) {
  const protocol = context.protocolName;
  tell({ asked: toJson(request, asked), protocol, timed: context.timeoutMs() !== undefined });
  const said = asked.messages.at(-1).parts.map((part) => part.body.value).join("");
  if (said === "refuse") throw new ConnectError("too many", Code.ResourceExhausted, { "retry-after": "7" });
  yield step("start", { id: "a1", model: "node" });
  yield step("blockStart", { block: 0, kind: { case: "text", value: {} } });
  if (said === "hang") {
    yield step("delta", { block: 0, delta: { case: "text", value: "so" } });
    await new Promise((done) => context.signal.addEventListener("abort", done));
    tell({ cancelled: protocol });
    return;
  }
  // Long enough to be compressed.
  for (const word of ["héllo", " ", "x".repeat(5000)]) {
    yield step("delta", { block: 0, delta: { case: "text", value: word } });
  }
  if (said === "break") throw new ConnectError("overloaded", Code.Unavailable);
  yield step("blockStop", { block: 0 });
  if (asked.tools.length > 0) {
    yield step("blockStart", { block: 1, kind: { case: "toolCall", value: { id: "c1", name: asked.tools[0].name } } });
    yield step("delta", { block: 1, delta: { case: "arguments", value: '{"city":"Paris"}' } });
    yield step("blockStop", { block: 1 });
  }
  yield step("finish", { reason: asked.tools.length > 0 ? 5 : 1 });
  yield step("usage", { input: 11n, output: 7n });
}

const handler = connectNodeAdapter({ routes: (router) => router.service(service, { chat }) });
const listen = (server) => new Promise((done) => server.listen(0, "127.0.0.1", () => done(server.address().port)));
tell({ http1: await listen(createServer(handler)), http2: await listen(createServer2(handler)) });
