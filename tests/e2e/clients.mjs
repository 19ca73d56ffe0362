// The official clients and the Vercel AI SDK against a server: chat, streams, tools, structured answers, thinking,
// cancelling, errors. tests/e2e/clients.sh runs it; by hand:
//
//   mkdir -p build/clients && cp tests/e2e/*.mjs tests/e2e/package*.json build/clients && cd build/clients && npm ci
//   triax serve -m MODEL --port 8080 &
//   node clients.mjs http://127.0.0.1:8080
//
// Any model does, one with random weights too: what is checked is the form of its answers. Where a server asks for a
// key it is in TRIAX_API_KEY.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, Output, generateObject, generateText, stepCountIs, streamObject, streamText, tool } from "ai";
import OpenAI from "openai";
import { z } from "zod";
import { runChecks } from "./checks.mjs";

const base = process.argv[2] ?? "http://127.0.0.1:8080";
const apiKey = process.env.TRIAX_API_KEY ?? "none";
const openai = new OpenAI({ baseURL: base + "/v1", apiKey, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: base, apiKey, maxRetries: 0 });
const vercel = (key = apiKey) => createOpenAICompatible({
  name: "triax", baseURL: base + "/v1", apiKey: key, includeUsage: true, supportsStructuredOutputs: true })("any");

const messages = [{ role: "user", content: "hello" }];
const parameters = {
  type: "object", additionalProperties: false, required: ["n"],
  properties: { n: { type: "integer", minimum: 1, maximum: 9 } },
};
const off = { thinking: { type: "disabled" } };
const fixed = { model: "any", temperature: 0, seed: 1 };

// What providerOptions holds goes into the body as it is.
const ask = (more = {}, body = {}) => ({
  model: vercel(), maxRetries: 0, temperature: 0, seed: 1, prompt: "hello", providerOptions: { triax: body }, ...more });

// A model that has learned nothing talks up to the limit. K3's token that closes a channel, made likely, has it end
// whatever may end; where the vocabulary is another one, a few seeds find an answer that does not talk on.
const kClose = 163588;
const brief = { logit_bias: await closes() ? { [kClose]: 100 } : {} };

async function closes() {
  const body = JSON.stringify({ tokens: [kClose] });
  const headers = { authorization: `Bearer ${apiKey}` };
  const answer = await fetch(base + "/detokenize", { method: "POST", body, headers });
  return answer.ok && (await answer.json()).prompt === "<|close|>";
}

async function first(attempt, good) {
  for (let seed = 0; seed < 8; ++seed) {
    const answer = await attempt(seed);
    if (good(answer)) return answer;
  }
  assert.fail("no answer came to its end");
}

// After a client left the server works for nobody.
async function idle() {
  const headers = { authorization: `Bearer ${apiKey}` };
  for (let i = 0; i < 100; ++i) {
    const text = await (await fetch(base + "/metrics", { headers })).text();
    if (/^triax_sequences_running 0$/m.test(text)) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.fail("an answer that was cancelled is still being computed");
}

async function parts(stream) {
  const out = [];
  for await (const part of stream.fullStream) out.push(part);
  const fault = out.find((part) => part.type === "error");
  if (fault) throw fault.error;
  return out;
}
const joined = (list, type) => list.filter((p) => p.type === type).map((p) => p.text ?? p.delta ?? "").join("");

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
        model: "any", seed, messages, tools, max_tokens: 600, ...off, ...brief,
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
  async "openai: a call in a stream"() {
    const tools = [{ type: "function", function: { name: "look", parameters, strict: true } }];
    const answer = await first(
      (seed) => openai.chat.completions.stream({ model: "any", seed, messages, tools, max_tokens: 600,
        ...off, ...brief, tool_choice: "required" }).finalChatCompletion(),
      (a) => a.choices[0].finish_reason === "tool_calls");
    const call = answer.choices[0].message.tool_calls[0];
    assert.equal(call.function.name, "look");
    assert.ok(JSON.parse(call.function.arguments).n >= 1);
  },
  async "openai: thinking, and none"() {
    const on = await openai.chat.completions.create(
      { ...fixed, messages, max_tokens: 16, reasoning_effort: "low" });
    assert.ok(on.choices[0].message.reasoning_content.length > 0);
    assert.ok(on.usage.completion_tokens_details.reasoning_tokens > 0);
    const none = await openai.chat.completions.create(
      { ...fixed, messages, max_tokens: 16, reasoning_effort: "none" });
    assert.equal(none.choices[0].message.reasoning_content, undefined);
    assert.equal(none.usage.completion_tokens_details.reasoning_tokens, 0);
  },
  async "openai: a stream that is cancelled"() {
    const stream = await openai.chat.completions.create(
      { ...fixed, messages, max_tokens: 2000, stream: true, ignore_eos: true });
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta) break;
    }
    stream.controller.abort();
    await idle();
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
        max_output_tokens: 600, ...brief }),
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
      (seed) => anthropic.messages.stream({ model: "any", seed, messages, tools, max_tokens: 600, ...brief,
        tool_choice: { type: "tool", name: "look" } }).finalMessage(),
      (a) => a.stop_reason === "tool_use");
    const call = answer.content.find((b) => b.type === "tool_use");
    assert.ok(call.input.n >= 1 && call.input.n <= 9);
    const next = await anthropic.messages.create({ ...fixed, tools, max_tokens: 8,
      messages: [...messages, { role: "assistant", content: answer.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "42" }] }] });
    assert.ok(next.usage.cache_read_input_tokens >= answer.usage.input_tokens);
  },
  async "anthropic: thinking is a block of its own"() {
    const answer = await anthropic.messages.create({ ...fixed, messages, max_tokens: 16,
      thinking: { type: "enabled", budget_tokens: 1024 } });
    assert.equal(answer.content[0].type, "thinking");
    assert.ok(answer.content[0].thinking.length > 0);
    const without = await anthropic.messages.create({ ...fixed, messages, max_tokens: 16 });
    assert.ok(without.content.every((b) => b.type === "text"));
  },
  async "anthropic: a stream that is cancelled"() {
    const stream = anthropic.messages.stream({ ...fixed, messages, max_tokens: 4000 });
    const ended = assert.rejects(stream.finalMessage(), (e) => e instanceof Anthropic.APIUserAbortError);
    await new Promise((done) => stream.once("text", done));
    stream.abort();
    await ended;
    await idle();
  },
  async "anthropic: tokens are counted, errors are errors"() {
    assert.ok((await anthropic.messages.countTokens({ model: "any", messages })).input_tokens > 0);
    await assert.rejects(anthropic.messages.create({ ...fixed, messages: [], max_tokens: 1 }),
      (e) => e instanceof Anthropic.BadRequestError);
  },
  async "ai sdk: a chat answer"() {
    const answer = await generateText(ask({ maxOutputTokens: 16 }, off));
    assert.ok(answer.text.length > 0);
    assert.equal(answer.reasoningText, undefined);
    assert.equal(answer.finishReason, "length");
    assert.equal(answer.usage.outputTokens, 16);
    assert.ok(answer.usage.inputTokens > 0);
  },
  async "ai sdk: a stream adds up to the whole answer"() {
    const whole = await generateText(ask({ maxOutputTokens: 24 }, off));
    const list = await parts(streamText(ask({ maxOutputTokens: 24 }, off)));
    assert.equal(joined(list, "text-delta"), whole.text);
    assert.ok(list.filter((p) => p.type === "text-delta").length > 4, "in many pieces");
    const end = list.find((p) => p.type === "finish");
    assert.equal(end.finishReason, whole.finishReason);
    assert.equal(end.totalUsage.outputTokens, whole.usage.outputTokens);
    assert.equal(end.totalUsage.inputTokens, whole.usage.inputTokens);
  },
  async "ai sdk: thinking comes as reasoning parts"() {
    const body = { thinking: { type: "enabled", effort: "low" } };
    const whole = await generateText(ask({ maxOutputTokens: 16 }, body));
    assert.ok(whole.reasoningText.length > 0);
    assert.ok(whole.usage.outputTokenDetails.reasoningTokens > 0);
    const list = await parts(streamText(ask({ maxOutputTokens: 16 }, body)));
    assert.equal(joined(list, "reasoning-delta"), whole.reasoningText);
    const effort = await generateText(ask({ maxOutputTokens: 16 }, { reasoningEffort: "low" }));
    assert.equal(effort.reasoningText, whole.reasoningText, "reasoningEffort says the same");
  },
  async "ai sdk: tools, called, answered and gone on from"() {
    const given = [];
    const tools = { look: tool({
      description: "Looks up a number", inputSchema: z.object({ n: z.number().int().min(1).max(9) }),
      execute: async ({ n }) => { given.push(n); return { square: n * n }; } }) };
    const options = (seed) => ask({
      seed, temperature: 1, tools, maxOutputTokens: 300, stopWhen: stepCountIs(2),
      prepareStep: ({ stepNumber }) => ({
        toolChoice: stepNumber === 0 ? { type: "tool", toolName: "look" } : "none" }) }, { ...off, ...brief });
    const whole = await first((seed) => generateText(options(seed)), (a) => a.steps.length === 2);
    assert.equal(whole.steps[0].finishReason, "tool-calls");
    assert.deepEqual(whole.steps[0].toolResults[0].output, { square: given[0] * given[0] });
    assert.equal(whole.steps[1].toolCalls.length, 0);
    assert.ok(whole.steps[1].usage.inputTokenDetails.cacheReadTokens > 0, "the second step begins from the first");
    const list = await first(async (seed) => parts(streamText(options(seed))),
      (all) => all.some((p) => p.type === "tool-result"));
    const call = list.find((p) => p.type === "tool-call");
    assert.deepEqual(JSON.parse(joined(list.filter((p) => p.id === call.toolCallId), "tool-input-delta")), call.input);
    assert.ok(Number.isInteger(call.input.n) && call.input.n >= 1 && call.input.n <= 9);
  },
  async "ai sdk: any tool, where one is required"() {
    const tools = Object.fromEntries(["red", "green"].map((name) =>
      [name, tool({ inputSchema: z.object({ on: z.boolean() }) })]));
    const answer = await first(
      (seed) => generateText(ask({ seed, temperature: 1, tools, toolChoice: "required", maxOutputTokens: 300 },
        { ...off, ...brief })),
      (a) => a.finishReason === "tool-calls");
    assert.ok(["red", "green"].includes(answer.toolCalls[0].toolName));
    assert.equal(typeof answer.toolCalls[0].input.on, "boolean");
  },
  async "ai sdk: structured output"() {
    const schema = z.object({ kind: z.enum(["fruit", "stone"]), sizes: z.array(z.number().int().min(0).max(9)).max(3) });
    const object = (await generateObject(ask({ schema, maxOutputTokens: 200 }, off))).object;
    assert.deepEqual(schema.parse(object), object);
    const stream = streamObject(ask({ schema, maxOutputTokens: 200 }, off));
    let last;
    for await (const partial of stream.partialObjectStream) last = partial;
    assert.deepEqual(last, object, "the stream ends with the same object");
    assert.deepEqual(await stream.object, object);
    const text = await generateText(ask({ output: Output.object({ schema }), maxOutputTokens: 200 }, off));
    assert.deepEqual(text.output, object);
  },
  async "ai sdk: a stream that is cancelled"() {
    const controller = new AbortController();
    const types = [];
    const stream = streamText(ask(
      { maxOutputTokens: 4000, abortSignal: controller.signal }, { ...off, ignore_eos: true }));
    for await (const part of stream.fullStream) {
      types.push(part.type);
      if (part.type === "text-delta") controller.abort();
    }
    assert.equal(types.at(-1), "abort");
    await idle();
    await assert.rejects(generateText(ask({ maxOutputTokens: 4000, abortSignal: AbortSignal.timeout(300) },
      { ...off, ignore_eos: true })), (e) => e.name === "TimeoutError" || e.name === "AbortError");
    await idle();
  },
  async "ai sdk: errors are errors"() {
    const bad = (e) => APICallError.isInstance(e) && e.statusCode === 400 && /^temperature/.test(e.message) &&
      !e.isRetryable;
    await assert.rejects(generateText(ask({ temperature: 9 })), bad);
    await assert.rejects(async () => parts(streamText(ask({ temperature: 9, onError() {} }))), bad);
    await assert.rejects(generateText(ask({ messages: [{ role: "user", content: [
      { type: "image", image: "data:image/png;base64,iVBORw0KGgo=" }] }], prompt: undefined })),
      (e) => APICallError.isInstance(e) && e.statusCode === 400);
  },
};

if (apiKey !== "none") {
  checks["a wrong key is refused to each"] = async () => {
    const wrong = { apiKey: "wrong", maxRetries: 0 };
    await assert.rejects(new OpenAI({ ...wrong, baseURL: base + "/v1" }).chat.completions.create({ ...fixed, messages }),
      (e) => e instanceof OpenAI.AuthenticationError);
    await assert.rejects(new Anthropic({ ...wrong, baseURL: base }).messages.create({ ...fixed, messages, max_tokens: 1 }),
      (e) => e instanceof Anthropic.AuthenticationError);
    await assert.rejects(generateText(ask({ model: vercel("wrong") })),
      (e) => APICallError.isInstance(e) && e.statusCode === 401);
  };
}

await runChecks(checks, process.argv[3]);
