import { GoogleGenAI } from "@google/genai";
import { base, city, key, person, run, said } from "./cases.mjs";

const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: base, timeout: 30_000 } });
const tools = [{ functionDeclarations: [{ name: "get_weather", description: "Weather", parametersJsonSchema: city }] }];

await run({
  async generate(model) {
    return (await client.models.generateContent({ model, contents: said })).text;
  },
  async generate_stream(model) {
    let text = "";
    for await (const chunk of await client.models.generateContentStream({ model, contents: said })) text += chunk.text ?? "";
    return text;
  },
  async generate_tools(model) {
    const contents = [{ role: "user", parts: [{ text: "call get_weather" }] }];
    const first = await client.models.generateContent({ model, contents, config: { tools } });
    const results = first.functionCalls.map((call) => ({
      functionResponse: { id: call.id, name: call.name, response: { output: "rain" } },
    }));
    contents.push(first.candidates[0].content, { role: "user", parts: results });
    return (await client.models.generateContent({ model, contents, config: { tools } })).text;
  },
  async generate_object(model) {
    const config = { responseMimeType: "application/json", responseJsonSchema: person };
    return JSON.parse((await client.models.generateContent({ model, contents: said, config })).text);
  },
  async count(model) {
    return (await client.models.countTokens({ model, contents: said })).totalTokens > 0;
  },
  async unknown_model(model) {
    await client.models.generateContent({ model: `${model}x`, contents: said });
  },
});
