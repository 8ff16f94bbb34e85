import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { base, city, key, run, said } from "./cases.mjs";

const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: key, maxRetries: 0, timeout: 30_000 });
const messages = [{ role: "user", content: said }];
const tools = [{ type: "function", function: { name: "get_weather", description: "Weather", parameters: city } }];
const flat = [{ type: "function", name: "get_weather", description: "Weather", parameters: city, strict: true }];
const Person = z.object({ name: z.string(), age: z.int() });

await run({
  async chat(model) {
    return (await client.chat.completions.create({ model, messages })).choices[0].message.content;
  },
  async chat_stream(model) {
    let text = "";
    const stream = await client.chat.completions.create({ model, messages, stream: true, stream_options: { include_usage: true } });
    for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
    return text;
  },
  async chat_helper(model) {
    return (await client.chat.completions.stream({ model, messages }).finalChatCompletion()).choices[0].message.content;
  },
  async chat_tools(model) {
    const runner = client.chat.completions.runTools({
      model,
      messages: [{ role: "user", content: "call get_weather" }],
      tools: [{ type: "function", function: { ...tools[0].function, parse: JSON.parse, function: async () => "rain" } }],
    });
    return runner.finalContent();
  },
  async chat_parse(model) {
    const response_format = zodResponseFormat(Person, "person");
    return (await client.chat.completions.parse({ model, messages, response_format })).choices[0].message.parsed;
  },
  async responses(model) {
    return (await client.responses.create({ model, input: said })).output_text;
  },
  async responses_helper(model) {
    const stream = client.responses.stream({ model, input: said });
    let text = "";
    for await (const event of stream) if (event.type === "response.output_text.delta") text += event.delta;
    const final = await stream.finalResponse();
    return final.output_text === text ? text : `${text} != ${final.output_text}`;
  },
  async responses_tools(model) {
    const first = await client.responses.create({ model, input: "call get_weather", tools: flat });
    const results = first.output
      .filter((item) => item.type === "function_call")
      .map((item) => ({ type: "function_call_output", call_id: item.call_id, output: "rain" }));
    return (await client.responses.create({ model, input: results, tools: flat, previous_response_id: first.id })).output_text;
  },
  async responses_parse(model) {
    return (await client.responses.parse({ model, input: said, text: { format: zodTextFormat(Person, "person") } })).output_parsed;
  },
  async unknown_model(model) {
    await client.chat.completions.create({ model: `${model}x`, messages });
  },
});
