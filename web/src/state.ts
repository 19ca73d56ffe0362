// The state of the page and what can be done with it. Components read it with use().
import { useEffect, useState } from "preact/hooks";
import * as api from "./api";
import * as store from "./store";
import type { AssistantMessage, Conversation, Message, Model, Settings } from "./types";

interface Run {
  conversation: Conversation;
  message: AssistantMessage;
  abort: AbortController;
  thinking: boolean;
  started: number; // performance.now()
}

export interface Notice {
  text: string;
  undo?: () => void;
}

export interface State {
  settings: Settings;
  conversations: Conversation[];
  current: Conversation;
  model: Model | undefined;
  run: Run | undefined;
  error: string; // of the server, or of the page; one line
  needsKey: boolean;
  notice: Notice | undefined;
  said: string; // for screen readers
}

const emptyConversation = (): Conversation => ({
  id: store.freshId(),
  title: "",
  updated: Date.now(),
  messages: [],
});

function initial(): State {
  const conversations = store.loadConversations();
  const wanted = store.loadCurrent();
  return {
    settings: store.loadSettings(),
    conversations,
    current: conversations.find((c) => c.id === wanted) ?? emptyConversation(),
    model: undefined,
    run: undefined,
    error: "",
    needsKey: false,
    notice: undefined,
    said: "",
  };
}

export const state: State = initial();
const listeners = new Set<() => void>();
let timer = 0;

export function changed(): void {
  if (timer) {
    clearTimeout(timer);
    timer = 0;
  }
  for (const call of listeners) call();
}

// While an answer is written: at most 25 times a second.
function changedSoon(): void {
  timer ||= window.setTimeout(() => {
    timer = 0;
    changed();
  }, 40);
}

export function use(): State {
  const [, again] = useState(0);
  useEffect(() => {
    const call = () => again((n) => n + 1);
    listeners.add(call);
    return () => void listeners.delete(call);
  }, []);
  return state;
}

function set(part: Partial<State>): void {
  Object.assign(state, part);
  changed();
}

// --- settings -------------------------------------------------------------------------------------

export function applyTheme(): void {
  const theme = state.settings.theme;
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

export function change(part: Partial<Settings>): void {
  state.settings = { ...state.settings, ...part };
  if (!store.saveSettings(state.settings)) state.error = full;
  applyTheme();
  changed();
}

export async function connect(): Promise<void> {
  try {
    const model = await api.model(state.settings.key);
    set({ model, needsKey: false, error: "" });
  } catch (error) {
    const refused = error instanceof api.ServerError && error.status === 401;
    const wrong = refused && state.settings.key !== "";
    set({ model: undefined, needsKey: refused, error: refused && !wrong ? "" : (error as Error).message });
  }
}

// Without a key one can still read what is kept here.
export const laterKey = (): void => set({ needsKey: false });

// --- conversations --------------------------------------------------------------------------------

const full = "The browser's storage is full or off: this conversation is not kept. Deleting others makes room.";

function keep(conversation: Conversation): void {
  if (!state.conversations.includes(conversation)) state.conversations.unshift(conversation);
  state.conversations.sort((a, b) => b.updated - a.updated);
  if (!store.saveConversation(conversation)) state.error = full;
  store.saveCurrent(state.current.id);
}

export function open(conversation: Conversation): void {
  store.saveCurrent(conversation.id);
  set({ current: conversation, error: "" });
}

export function begin(): void {
  if (state.current.messages.length > 0) open(emptyConversation());
}

export function remove(conversation: Conversation): void {
  if (state.run?.conversation === conversation) stop();
  store.removeConversation(conversation.id);
  state.conversations = state.conversations.filter((c) => c !== conversation);
  const was = state.current === conversation;
  if (was) state.current = emptyConversation();
  tell("Conversation deleted.", () => {
    keep(conversation);
    if (was) open(conversation);
  });
}

export function tell(text: string, undo?: () => void): void {
  const notice: Notice = { text };
  if (undo) {
    notice.undo = () => {
      state.notice = undefined;
      undo();
      changed();
    };
  }
  set({ notice, said: text });
  setTimeout(() => {
    if (state.notice === notice) set({ notice: undefined });
  }, 8000);
}

store.onOtherTab(() => {
  if (state.run) return; // this tab's answer goes before
  const conversations = store.loadConversations();
  const current = conversations.find((c) => c.id === state.current.id);
  set({ conversations, current: current ?? (state.current.messages.length > 0 ? emptyConversation() : state.current) });
});

// --- turns ----------------------------------------------------------------------------------------

export function send(text: string): void {
  if (state.run || text.trim() === "") return;
  const c = state.current;
  if (c.messages.length === 0) c.title = text.trim().split("\n")[0]!.slice(0, 80);
  c.messages.push({ id: store.freshId(), role: "user", text });
  void answer(c);
}

// What stood after it can be had back.
function cut(c: Conversation, at: number): void {
  const before = c.messages.slice();
  const copy = structuredClone(before) as Message[];
  c.messages.length = at;
  if (before.length - at < 2) return;
  tell("What came after was taken out.", () => {
    if (state.run?.conversation === c) stop();
    c.messages.splice(0, Infinity, ...copy);
    keep(c);
    changed();
  });
}

export function edit(message: Message, text: string): void {
  const c = state.current;
  const at = c.messages.indexOf(message);
  if (state.run || at < 0) return;
  cut(c, at + 1);
  if (message.role !== "user") return;
  // A new object: what undo brings back is the old one.
  c.messages[at] = { ...message, text };
  if (at === 0) c.title = text.trim().split("\n")[0]!.slice(0, 80);
  void answer(c);
}

export function regenerate(message: Message): void {
  const c = state.current;
  const at = c.messages.indexOf(message);
  if (state.run || at < 0) return;
  cut(c, at);
  void answer(c);
}

// Goes on with an answer that was stopped or cut at its limit.
export function goOn(message: AssistantMessage): void {
  if (!state.run) void answer(state.current, message);
}

export function giveResult(message: AssistantMessage, index: number, text: string): void {
  const call = message.calls[index];
  if (!call || state.run) return;
  call.result = text;
  keep(state.current);
  if (message.calls.every((c) => c.result !== undefined)) void answer(state.current);
  else changed();
}

export function stop(): void {
  state.run?.abort.abort();
}

function apply(m: AssistantMessage, delta: api.Delta): boolean {
  let some = false;
  if (delta.reasoning) {
    m.reasoning = (m.reasoning ?? "") + delta.reasoning;
    some = true;
  }
  if (delta.text) {
    m.text += delta.text;
    some = true;
  }
  for (const { index, call } of delta.calls ?? []) {
    const known = (m.calls[index] ??= { id: call.id ?? "", name: call.name ?? "", args: "" });
    known.args += call.args ?? "";
    some = true;
  }
  if (delta.finish) m.finish = delta.finish;
  return some;
}

async function read(run: Run, body: unknown): Promise<void> {
  const m = run.message;
  const answer = await api.stream(body, state.settings.key, run.abort.signal);
  if (answer.warning) m.warning = answer.warning;
  const before = m.thought ?? 0;
  let first = 0;
  let saved = performance.now();
  for await (const delta of answer.deltas) {
    const now = performance.now();
    if (apply(m, delta) && !first) first = now;
    run.thinking = m.text === "" && m.calls.length === 0 && m.reasoning !== undefined;
    if (delta.reasoning) m.thought = before + (now - run.started) / 1000;
    if (delta.usage) {
      m.stats = { ...delta.usage, first: ((first || now) - run.started) / 1000, seconds: first ? (now - first) / 1000 : 0 };
    }
    if (now - saved > 1000) {
      saved = now;
      store.saveConversation(run.conversation);
    }
    changedSoon();
  }
}

async function answer(c: Conversation, partial?: AssistantMessage): Promise<void> {
  const message: AssistantMessage = partial ?? { id: store.freshId(), role: "assistant", text: "", calls: [] };
  let body: unknown;
  try {
    body = api.request(c, state.settings, state.model?.id ?? "default", partial !== undefined);
  } catch (error) {
    keep(c);
    set({ error: (error as Error).message });
    return;
  }
  delete message.finish;
  delete message.error;
  delete message.warning;
  delete message.stats;
  if (!partial) {
    if (state.settings.effort !== "none") message.reasoning = "";
    c.messages.push(message);
  }
  c.updated = Date.now();
  const run: Run = { conversation: c, message, abort: new AbortController(), thinking: false, started: performance.now() };
  keep(c);
  set({ run, error: "", said: "Waiting for the answer." });
  const tick = setInterval(changedSoon, 500); // the clock of the thinking
  try {
    await read(run, body);
  } catch (error) {
    if (run.abort.signal.aborted) message.finish = "stopped";
    else failed(message, error as Error);
  }
  clearInterval(tick);
  c.updated = Date.now();
  // An answer of nothing is no message; its error stands below the conversation.
  const empty = message.text === "" && !message.reasoning && message.calls.length === 0;
  if (empty && (message.error || message.finish === "stopped")) {
    c.messages = c.messages.filter((m) => m !== message);
    if (message.error) state.error = message.error;
  }
  if (state.conversations.includes(c)) keep(c);
  set({ run: undefined, said: spoken(message) });
}

function failed(message: AssistantMessage, error: Error): void {
  message.error = error.message;
  if (error instanceof api.ServerError && error.status === 401) state.needsKey = true;
}

function spoken(m: AssistantMessage): string {
  if (m.error) return m.error;
  if (m.finish === "stopped") return "Stopped.";
  if (m.calls.length > 0) return `The model calls ${m.calls.map((call) => call.name).join(", ")}.`;
  return `Answer: ${m.text.slice(0, 2000)}`;
}

addEventListener("pagehide", () => {
  if (state.run) store.saveConversation(state.run.conversation);
});
