// Starts aimock, a mock of the providers that others wrote, on loopback, and says where.
import { LLMock } from "@copilotkit/aimock";

const mock = new LLMock({ port: 0, host: "127.0.0.1", chunkSize: 6, latency: 0 });
mock.onMessage("say hello", { content: "Hello from a mock that others wrote." });
mock.addFixture({
  match: { userMessage: "the weather", hasToolResult: false },
  response: { toolCalls: [{ name: "get_weather", arguments: '{"city":"Paris"}' }] },
});
mock.addFixture({ match: { userMessage: "the weather", hasToolResult: true }, response: { content: "It rains in Paris." } });
mock.addFixture({
  match: { userMessage: "think first" },
  response: { content: "Thought and said.", reasoning: "A thought before the words." },
});
mock.addFixture({
  match: { userMessage: "be limited" },
  response: { error: { message: "Slow down", type: "rate_limit_error" }, status: 429 },
});
await mock.start();
console.log(`listening on ${mock.url}`);
