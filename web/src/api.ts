// The server as the page uses it: the list of models, and a chat answer as it is written.
import type { Call, Conversation, Message, Model, Settings } from "./types";

export class ServerError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

const unreachable = "The server does not answer. Is `triax serve` running?";

async function ask(path: string, key: string, init: RequestInit = {}): Promise<Response> {
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (key) headers["Authorization"] = `Bearer ${key}`;
  let response: Response;
  try {
    // Relative, so that the page also works under a path of a proxy.
    response = await fetch(path, { ...init, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ServerError(unreachable, 0);
  }
  if (response.ok) return response;
  const text = await response.text().catch(() => "");
  throw new ServerError(messageOf(text) ?? `The server answered ${response.status}.`, response.status);
}

// Of an error body.
function messageOf(text: string): string | undefined {
  try {
    const message = JSON.parse(text)?.error?.message;
    return typeof message === "string" ? message.replace(/\s+/g, " ") : undefined;
  } catch {
    return undefined;
  }
}

export async function model(key: string): Promise<Model> {
  const list = await (await ask("v1/models", key)).json();
  const first = list?.data?.[0];
  if (typeof first?.id !== "string") throw new ServerError("The server lists no model.", 200);
  return { id: first.id, context: Number(first.context_length) || 0 };
}

// A message as the API takes it; what the model wrote goes back as it came, or its cached state
// would not fit.
function wire(message: Message, partial: boolean): unknown[] {
  if (message.role === "user") return [{ role: "user", content: message.text }];
  const calls = message.calls.map((call) => ({
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: call.args },
  }));
  const turn: Record<string, unknown> = {
    role: "assistant",
    content: calls.length > 0 && message.text === "" ? null : message.text,
  };
  if (message.reasoning !== undefined) turn["reasoning_content"] = message.reasoning;
  if (calls.length > 0) turn["tool_calls"] = calls;
  if (partial) turn["partial"] = true;
  const results = message.calls
    .filter((call) => call.result !== undefined)
    .map((call) => ({ role: "tool", tool_call_id: call.id, content: call.result }));
  return [turn, ...results];
}

function number(text: string, name: string): number | undefined {
  if (text.trim() === "") return undefined;
  const value = Number(text);
  if (!Number.isFinite(value)) throw new ServerError(`${name} is no number: ${text}`, 400);
  return value;
}

export function tools(text: string): unknown[] | undefined {
  if (text.trim() === "") return undefined;
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch (error) {
    throw new ServerError(`Tools in the settings are no JSON: ${(error as Error).message}`, 400);
  }
  if (!Array.isArray(list)) throw new ServerError("Tools in the settings should be a JSON list.", 400);
  return list.length > 0 ? list : undefined;
}

// The body of a request. With `partial` the last message is gone on with.
export function request(conversation: Conversation, s: Settings, name: string, partial: boolean): unknown {
  const last = conversation.messages.length - 1;
  const messages = conversation.messages.flatMap((m, i) => wire(m, partial && i === last));
  if (s.system.trim() !== "") messages.unshift({ role: "system", content: s.system });
  const list = tools(s.tools);
  return {
    model: name,
    messages,
    stream: true,
    thinking: s.effort === "none" ? { type: "disabled" } : { type: "enabled", effort: s.effort },
    temperature: number(s.temperature, "Temperature"),
    top_p: number(s.topP, "Top-p"),
    max_completion_tokens: number(s.maxTokens, "Most tokens"),
    seed: number(s.seed, "Seed"),
    tools: list,
    tool_choice: list ? s.toolChoice : undefined,
    prompt_cache_key: conversation.id,
  };
}

export interface Usage {
  prompt: number;
  cached: number;
  completion: number;
  reasoning: number;
}

export interface Delta {
  reasoning?: string;
  text?: string;
  calls?: { index: number; call: Partial<Call> }[];
  finish?: string;
  usage?: Usage;
}

// Events of a stream of server-sent events: the text of each one's data.
export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      text += done ? decoder.decode() : decoder.decode(value, { stream: true });
      for (;;) {
        const end = /\r?\n\r?\n/.exec(text);
        if (!end) break;
        const event = text.slice(0, end.index);
        text = text.slice(end.index + end[0].length);
        const data = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
        if (data.length > 0) yield data.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
      }
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/* eslint-disable-next-line -- what the server sends is read field by field */
function deltaOf(chunk: any): Delta {
  const choice = chunk.choices?.[0];
  const out: Delta = {};
  if (choice?.delta?.reasoning_content) out.reasoning = choice.delta.reasoning_content;
  if (choice?.delta?.content) out.text = choice.delta.content;
  if (choice?.delta?.tool_calls) {
    out.calls = choice.delta.tool_calls.map((c: any) => ({
      index: c.index ?? 0,
      call: { id: c.id, name: c.function?.name, args: c.function?.arguments },
    }));
  }
  if (choice?.finish_reason) out.finish = choice.finish_reason;
  const usage = chunk.usage ?? choice?.usage;
  if (usage) {
    out.usage = {
      prompt: usage.prompt_tokens ?? 0,
      cached: usage.prompt_tokens_details?.cached_tokens ?? usage.cached_tokens ?? 0,
      completion: usage.completion_tokens ?? 0,
      reasoning: usage.completion_tokens_details?.reasoning_tokens ?? 0,
    };
  }
  return out;
}

export interface Stream {
  warning: string | undefined;
  deltas: AsyncGenerator<Delta>;
}

async function* deltas(body: ReadableStream<Uint8Array>): AsyncGenerator<Delta> {
  let whole = false;
  try {
    for await (const data of events(body)) {
      if (data === "[DONE]") {
        whole = true;
        return;
      }
      const chunk = JSON.parse(data);
      if (chunk.error) throw new ServerError(messageOf(data) ?? "The server failed.", 500);
      yield deltaOf(chunk);
    }
  } catch (error) {
    if (error instanceof ServerError || (error instanceof DOMException && error.name === "AbortError")) throw error;
    throw new ServerError("The connection broke before the answer was whole.", 0);
  }
  if (!whole) throw new ServerError("The connection ended before the answer did.", 0);
}

export async function stream(body: unknown, key: string, signal: AbortSignal): Promise<Stream> {
  const response = await ask("v1/chat/completions", key, {
    method: "POST",
    body: JSON.stringify(body),
    signal,
  });
  if (!response.body) throw new ServerError("The server sent no answer.", 200);
  return { warning: response.headers.get("x-triax-warning") ?? undefined, deltas: deltas(response.body) };
}
