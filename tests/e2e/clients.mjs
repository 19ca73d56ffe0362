// The official clients against a server: chat, streams, tools, structured answers, thinking, cancelling, errors.
//
//   mkdir -p build/clients && cd build/clients && npm install openai @anthropic-ai/sdk
//   triax serve -m MODEL --port 8080 &
//   node ../../tests/e2e/clients.mjs http://127.0.0.1:8080
//
// Any model does, one with random weights too: what is checked is the form of its answers.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.cwd(), "here.js"));
const OpenAI = require("openai").default ?? require("openai");
const Anthropic = require("@anthropic-ai/sdk").default ?? require("@anthropic-ai/sdk");
const base = process.argv[2] ?? "http://127.0.0.1:8080";
const openai = new OpenAI({ baseURL: base + "/v1", apiKey: "none", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: base, apiKey: "none", maxRetries: 0 });

const messages = [{ role: "user", content: "hello" }];
const parameters = {
  type: "object", additionalProperties: false, required: ["n"],
  properties: { n: { type: "integer", minimum: 1, maximum: 9 } },
};
const off = { thinking: { type: "disabled" } };
const fixed = { model: "any", temperature: 0, seed: 1 };

// Answers of a model that has learned nothing may talk up to the limit; a few seeds find one that does not.
async function first(attempt, good) {
  for (let seed = 0; seed < 8; ++seed) {
    const answer = await attempt(seed);
    if (good(answer)) return answer;
  }
  assert.fail("no answer came to its end");
}

const checks = {
  async "openai: the model is listed"() {
    const models = await openai.models.list();
    assert.ok(models.data[0].id);
  },
  async "openai: a stream adds up to the whole answer"() {
    const ask = { ...fixed, messages, max_tokens: 24 };
    const whole = await openai.chat.completions.create(ask);
    let content = "", reasoning = "", usage;
    const stream = await openai.chat.completions.create(
      { ...ask, stream: true, stream_options: { include_usage: true } });
    for await (const chunk of stream) {
      content += chunk.choices[0]?.delta?.content ?? "";
      reasoning += chunk.choices[0]?.delta?.reasoning_content ?? "";
      if (chunk.choices.length === 0) usage = chunk.usage;
    }
    assert.equal(content, whole.choices[0].message.content ?? "");
    assert.equal(reasoning, whole.choices[0].message.reasoning_content ?? "");
    assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
  },
  async "openai: a call and its result"() {
    const tools = [{ type: "function", function: { name: "look", parameters } }];
    const answer = await first(
      (seed) => openai.chat.completions.create({
        model: "any", seed, messages, tools, max_tokens: 600, ...off,
        tool_choice: { type: "function", function: { name: "look" } } }),
      (a) => a.choices[0].finish_reason === "tool_calls");
    const message = answer.choices[0].message;
    const { n } = JSON.parse(message.tool_calls[0].function.arguments);
    assert.ok(Number.isInteger(n) && n >= 1 && n <= 9);
    const next = await openai.chat.completions.create({
      ...fixed, tools, max_tokens: 8, ...off,
      messages: [...messages, message,
        { role: "tool", tool_call_id: message.tool_calls[0].id, content: "42" }] });
    assert.ok(next.usage.prompt_tokens_details.cached_tokens >= answer.usage.prompt_tokens);
  },
  async "openai: a structured answer"() {
    const schema = { type: "object", additionalProperties: false, required: ["a"],
      properties: { a: { enum: [1, 2] } } };
    const answer = await openai.chat.completions.create({
      model: "any", seed: 2, messages, max_tokens: 400, ...off,
      response_format: { type: "json_schema", json_schema: { name: "a", schema, strict: true } } });
    assert.ok([1, 2].includes(JSON.parse(answer.choices[0].message.content).a));
  },
  async "openai: a stream that is cancelled"() {
    const stream = await openai.chat.completions.create(
      { ...fixed, messages, max_tokens: 2000, stream: true, ignore_eos: true });
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta) break;
    }
    stream.controller.abort();
  },
  async "openai: errors are errors"() {
    await assert.rejects(openai.chat.completions.create({ ...fixed, messages, temperature: 9 }),
      (e) => e instanceof OpenAI.BadRequestError && e.param === "temperature");
    await assert.rejects(openai.models.retrieve("no-such-model"),
      (e) => e instanceof OpenAI.NotFoundError);
  },
  async "openai: responses, whole and streamed"() {
    const ask = { ...fixed, input: "hello", max_output_tokens: 24 };
    const whole = await openai.responses.create(ask);
    const stream = openai.responses.stream(ask);
    const last = await stream.finalResponse();
    assert.deepEqual(last.output.map((i) => [i.type, i.content]),
      whole.output.map((i) => [i.type, i.content]));
    assert.equal(last.usage.output_tokens, whole.usage.output_tokens);
  },
  async "openai: a call through responses"() {
    const tools = [{ type: "function", name: "look", parameters, strict: true }];
    const answer = await first(
      (seed) => openai.responses.create({ model: "any", seed, input: "hello", tools,
        tool_choice: { type: "function", name: "look" }, reasoning: { effort: "none" },
        max_output_tokens: 600 }),
      (a) => a.status === "completed");
    const call = answer.output.find((i) => i.type === "function_call");
    assert.ok(JSON.parse(call.arguments).n >= 1);
    const next = await openai.responses.create({ ...fixed, tools, max_output_tokens: 8,
      reasoning: { effort: "none" },
      input: [{ role: "user", content: "hello" }, ...answer.output,
        { type: "function_call_output", call_id: call.call_id, output: "42" }] });
    assert.ok(next.usage.input_tokens_details.cached_tokens >= answer.usage.input_tokens);
  },
  async "openai: completions"() {
    const answer = await openai.completions.create({ ...fixed, prompt: "once", max_tokens: 8 });
    assert.equal(answer.choices.length, 1);
  },
  async "anthropic: a stream adds up to the whole answer"() {
    const ask = { ...fixed, messages, max_tokens: 24,
      thinking: { type: "enabled", budget_tokens: 1024 } };
    const whole = await anthropic.messages.create(ask);
    const last = await anthropic.messages.stream(ask).finalMessage();
    assert.deepEqual(last.content.map((b) => b.thinking ?? b.text),
      whole.content.map((b) => b.thinking ?? b.text));
    assert.equal(last.stop_reason, whole.stop_reason);
    assert.equal(last.usage.output_tokens, whole.usage.output_tokens);
  },
  async "anthropic: a call and its result"() {
    const tools = [{ name: "look", input_schema: parameters }];
    const answer = await first(
      (seed) => anthropic.messages.stream({ model: "any", seed, messages, tools, max_tokens: 600,
        tool_choice: { type: "tool", name: "look" } }).finalMessage(),
      (a) => a.stop_reason === "tool_use");
    const call = answer.content.find((b) => b.type === "tool_use");
    assert.ok(call.input.n >= 1 && call.input.n <= 9);
    const next = await anthropic.messages.create({ ...fixed, tools, max_tokens: 8,
      messages: [...messages, { role: "assistant", content: answer.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "42" }] }] });
    assert.ok(next.usage.cache_read_input_tokens >= answer.usage.input_tokens);
  },
  async "anthropic: tokens are counted, errors are errors"() {
    assert.ok((await anthropic.messages.countTokens({ model: "any", messages })).input_tokens > 0);
    await assert.rejects(anthropic.messages.create({ ...fixed, messages: [], max_tokens: 1 }),
      (e) => e instanceof Anthropic.BadRequestError);
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`ok    ${name}`);
  } catch (error) {
    ++failed;
    console.log(`FAILED ${name}: ${error.stack ?? error}`);
  }
}
process.exit(failed === 0 ? 0 : 1);
