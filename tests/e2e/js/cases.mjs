// Runs a program's cases over every route, one after another, and prints what each gave as one JSON object.
export const base = process.env.BASE;
export const key = process.env.KEY;
const routes = process.env.ROUTES.split(",");

export const city = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
export const person = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["name", "age"],
  additionalProperties: false,
};
export const said = "hello there friend";

export async function run(cases) {
  const gave = {};
  for (const [name, ask] of Object.entries(cases)) {
    for (const route of routes) {
      try {
        gave[`${name} ${route}`] = { value: await ask(route) };
      } catch (error) {
        const status = error.status ?? error.statusCode ?? null;
        gave[`${name} ${route}`] = { error: { name: error.name, status, message: String(error.message).slice(0, 500) } };
      }
    }
  }
  console.log(JSON.stringify(gave));
}
