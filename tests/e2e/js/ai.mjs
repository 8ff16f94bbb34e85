import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, isStepCount, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { base, city, key, person, run, said } from "./cases.mjs";

const providers = {
  openai: createOpenAI({ baseURL: `${base}/v1`, apiKey: key }),
  openai_chat: createOpenAI({ baseURL: `${base}/v1`, apiKey: key }).chat,
  compatible: createOpenAICompatible({ name: "turnkeep", baseURL: `${base}/v1`, apiKey: key, supportsStructuredOutputs: true }),
  anthropic: createAnthropic({ baseURL: `${base}/v1`, apiKey: key }),
  google: createGoogleGenerativeAI({ baseURL: `${base}/v1beta`, apiKey: key }),
};
const tools = { get_weather: tool({ description: "Weather", inputSchema: jsonSchema(city), execute: async () => "rain" }) };
const stopWhen = (stepCountIs ?? isStepCount)(3);
const common = { maxRetries: 0 };

const cases = {};
for (const [name, provider] of Object.entries(providers)) {
  cases[`${name}_text`] = async (route) => (await generateText({ ...common, model: provider(route), prompt: said })).text;
  cases[`${name}_tools`] = async (route) =>
    (await generateText({ ...common, model: provider(route), prompt: "call get_weather", tools, stopWhen })).text;
  cases[`${name}_stream`] = async (route) => {
    let text = "", failed = null;
    const onError = ({ error }) => { failed = error; };
    const stream = streamText({ ...common, model: provider(route), prompt: "call get_weather", tools, stopWhen, onError });
    for await (const piece of stream.textStream) text += piece;
    if (failed) throw failed;
    return text;
  };
  cases[`${name}_object`] = async (route) =>
    (await generateObject({ ...common, model: provider(route), prompt: said, schema: jsonSchema(person) })).object;
  cases[`${name}_unknown_model`] = async (route) => {
    await generateText({ ...common, model: provider(`${route}x`), prompt: said });
  };
}
await run(cases);
