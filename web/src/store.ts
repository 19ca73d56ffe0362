// Conversations and settings, kept in this browser's local storage: one entry for each.
import type { Conversation, Settings } from "./types";

const kConversation = "triax.conversation.";
const kSettings = "triax.settings";
const kCurrent = "triax.current";

export const defaults: Settings = {
  effort: "high",
  temperature: "",
  topP: "",
  maxTokens: "",
  seed: "",
  system: "",
  tools: "",
  toolChoice: "auto",
  key: "",
  theme: "system",
};

export function freshId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  return Array.from(bytes, (b) => b.toString(36).padStart(2, "0")).join("");
}

function read<T>(key: string): T | undefined {
  try {
    const text = localStorage.getItem(key);
    return text === null ? undefined : (JSON.parse(text) as T);
  } catch {
    return undefined; // storage is off, or holds what another program wrote
  }
}

// False: it could not be kept.
function write(key: string, value: unknown): boolean {
  try {
    localStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

export function loadSettings(): Settings {
  return { ...defaults, ...read<Partial<Settings>>(kSettings) };
}

export const saveSettings = (settings: Settings): boolean => write(kSettings, settings);

// The newest first.
export function loadConversations(): Conversation[] {
  const out: Conversation[] = [];
  try {
    for (let i = 0; i < localStorage.length; ++i) {
      const key = localStorage.key(i);
      if (!key?.startsWith(kConversation)) continue;
      const conversation = read<Conversation>(key);
      if (conversation && Array.isArray(conversation.messages)) out.push(conversation);
    }
  } catch {
    // No storage: the page works, and forgets.
  }
  return out.sort((a, b) => b.updated - a.updated);
}

export const saveConversation = (c: Conversation): boolean => write(kConversation + c.id, c);

export function removeConversation(id: string): void {
  try {
    localStorage.removeItem(kConversation + id);
  } catch {
    // as above
  }
}

export const loadCurrent = (): string | undefined => read<string>(kCurrent);
export const saveCurrent = (id: string): boolean => write(kCurrent, id);

// Calls when another tab of this page changed a conversation.
export function onOtherTab(call: () => void): void {
  addEventListener("storage", (event) => {
    if (event.key === null || event.key.startsWith(kConversation)) call();
  });
}
