// What a conversation is made of; all of it is kept in the browser as JSON.

export interface Call {
  id: string;
  name: string;
  args: string; // JSON text, exactly as it was written: sent back unchanged
  result?: string;
}

export interface Stats {
  prompt: number;
  cached: number;
  completion: number;
  reasoning: number;
  first: number; // seconds to the first token
  seconds: number; // from the first token to the last
}

export interface UserMessage {
  id: string;
  role: "user";
  text: string;
}

export interface AssistantMessage {
  id: string;
  role: "assistant";
  text: string;
  reasoning?: string; // absent: the answer was asked for without thinking
  thought?: number; // seconds
  calls: Call[];
  finish?: string; // as the server said, or "stopped"
  stats?: Stats;
  error?: string;
  warning?: string;
}

export type Message = UserMessage | AssistantMessage;

export interface Conversation {
  id: string;
  title: string;
  updated: number; // milliseconds since 1970
  messages: Message[];
}

export type Effort = "none" | "low" | "high" | "max";
export type Theme = "system" | "light" | "dark";

// Numbers are kept as they were typed; empty: the server's default.
export interface Settings {
  effort: Effort;
  temperature: string;
  topP: string;
  maxTokens: string;
  seed: string;
  system: string;
  tools: string; // JSON: a list of function tools
  toolChoice: "auto" | "required" | "none";
  key: string;
  theme: Theme;
}

export interface Model {
  id: string;
  context: number;
}
