import Anthropic from "@anthropic-ai/sdk";
import { base, city, key, person, run, said } from "./cases.mjs";

const client = new Anthropic({ baseURL: base, apiKey: key, maxRetries: 0, timeout: 30_000 });
const messages = [{ role: "user", content: said }];
const tools = [{ name: "get_weather", description: "Weather", input_schema: city }];
const text = (message) => message.content.map((block) => block.text ?? "").join("");

await run({
  async messages(model) {
    return text(await client.messages.create({ model, max_tokens: 100, messages }));
  },
  async messages_stream(model) {
    let all = "";
    for await (const event of await client.messages.create({ model, max_tokens: 100, messages, stream: true })) {
      if (event.type === "content_block_delta") all += event.delta.text ?? "";
    }
    return all;
  },
  async messages_helper(model) {
    return text(await client.messages.stream({ model, max_tokens: 100, messages }).finalMessage());
  },
  async messages_tools(model) {
    const history = [{ role: "user", content: "call get_weather" }];
    const first = await client.messages.stream({ model, max_tokens: 100, messages: history, tools }).finalMessage();
    const results = first.content
      .filter((block) => block.type === "tool_use")
      .map((block) => ({ type: "tool_result", tool_use_id: block.id, content: "rain" }));
    history.push({ role: "assistant", content: first.content }, { role: "user", content: results });
    return text(await client.messages.create({ model, max_tokens: 100, messages: history, tools }));
  },
  async messages_object(model) {
    const output_config = { format: { type: "json_schema", schema: person } };
    return JSON.parse(text(await client.messages.create({ model, max_tokens: 100, messages, output_config })));
  },
  async count(model) {
    return (await client.messages.countTokens({ model, messages })).input_tokens > 0;
  },
  async unknown_model(model) {
    await client.messages.create({ model: `${model}x`, max_tokens: 100, messages });
  },
});
