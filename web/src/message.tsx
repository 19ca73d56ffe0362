// One message of a conversation, with what can be done with it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { CopyButton, Markdown } from "./markdown";
import { edit, giveResult, goOn, regenerate, state } from "./state";
import type { AssistantMessage, Call, Stats, UserMessage } from "./types";

const count = new Intl.NumberFormat("en");

export function tokens(n: number): string {
  return `${count.format(n)} token${n === 1 ? "" : "s"}`;
}

function seconds(s: number): string {
  if (s < 9.95) return `${s.toFixed(1)} s`;
  return s < 60 ? `${Math.round(s)} s` : `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
}

// As a text area that grows with what is written.
export function grow(area: HTMLTextAreaElement | null): void {
  if (!area) return;
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight + 2}px`;
}

function Editor({ text, label, done, save }: { text: string; label: string; save: string; done: (text?: string) => void }) {
  const [value, setValue] = useState(text);
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    grow(area.current);
    area.current?.focus();
    area.current?.setSelectionRange(text.length, text.length);
  }, []);
  return (
    <form
      class="editor"
      onSubmit={(event) => {
        event.preventDefault();
        done(value);
      }}
    >
      <textarea
        ref={area}
        aria-label={label}
        value={value}
        onInput={(event) => {
          setValue(event.currentTarget.value);
          grow(event.currentTarget);
        }}
        onKeyDown={(event) => {
          if (event.isComposing) return;
          if (event.key === "Enter" && !event.shiftKey) {
            event.preventDefault();
            done(value);
          } else if (event.key === "Escape") {
            event.stopPropagation();
            done();
          }
        }}
      />
      <div class="row">
        <button type="button" class="plain" onClick={() => done()}>
          Cancel
        </button>
        <button type="submit" class="primary">
          {save}
        </button>
      </div>
    </form>
  );
}

export function User({ message, busy }: { message: UserMessage; busy: boolean }) {
  const [editing, setEditing] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const done = (text?: string) => {
    setEditing(false);
    if (text !== undefined && text.trim() !== "") edit(message, text);
    else setTimeout(() => button.current?.focus());
  };
  return (
    <article class="user" aria-label="You">
      {editing ? (
        <Editor text={message.text} label="Edit your message" save="Send again" done={done} />
      ) : (
        <>
          <div class="bubble">{message.text}</div>
          <div class="actions">
            <CopyButton text={message.text} label="Copy" />
            <button ref={button} class="quiet edit" disabled={busy} onClick={() => setEditing(true)}>
              Edit
            </button>
          </div>
        </>
      )}
    </article>
  );
}

function Thinking({ message, live }: { message: AssistantMessage; live: boolean }) {
  const text = message.reasoning ?? "";
  if (text === "" && !live) return null;
  const n = message.stats?.reasoning ?? 0;
  const long = n > 0 ? ` · ${tokens(n)}` : "";
  const since = state.run ? (performance.now() - state.run.started) / 1000 : 0;
  return (
    <details class={live ? "thinking live" : "thinking"}>
      <summary>
        {live ? `Thinking · ${Math.floor(since)} s` : message.thought === undefined ? `Thought${long}` : `Thought for ${seconds(message.thought)}${long}`}
      </summary>
      <div class="thought" tabIndex={0}>
        {text}
      </div>
    </details>
  );
}

// JSON in lines to read. Works on the text, so that every literal stays as it was written, and a
// part that is still being written shows too.
function pretty(text: string): string {
  let out = "";
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.max(depth, 0))}`;
  for (const m of text.matchAll(/"(?:[^"\\]|\\.)*"?|[{[]\s*[}\]]|[{}[\],:]|\s+|[^\s{}[\],:"]+/g)) {
    const part = m[0];
    if (part === "{" || part === "[") {
      ++depth;
      out += part + line();
    } else if (part === "}" || part === "]") {
      --depth;
      out += line() + part;
    } else if (part === ",") out += part + line();
    else if (part === ":") out += ": ";
    else if (part.trim() !== "") out += part;
  }
  return out;
}

function ToolCall({ message, call, index, busy, live }: { message: AssistantMessage; call: Call; index: number; busy: boolean; live: boolean }) {
  const [editing, setEditing] = useState(false);
  const asks = call.result === undefined && !live;
  const [value, setValue] = useState("");
  return (
    <section class="call" aria-label={`Tool call ${call.name}`}>
      <header>
        <span class="dot" aria-hidden="true" />
        <code>{call.name}</code>
        <span class="faint">{live ? "is being called" : asks ? "waits for its result" : "called"}</span>
      </header>
      <pre tabIndex={0}>
        <code>{pretty(call.args) || "{}"}</code>
      </pre>
      {call.result !== undefined && !editing && (
        <div class="result">
          <div class="label">Result</div>
          <pre tabIndex={0}>{call.result}</pre>
          <button class="quiet" disabled={busy} onClick={() => setEditing(true)}>
            Change
          </button>
        </div>
      )}
      {editing && (
        <Editor
          text={call.result ?? ""}
          label={`Result of ${call.name}`}
          save="Save"
          done={(text) => {
            setEditing(false);
            if (text !== undefined) call.result = text;
          }}
        />
      )}
      {asks && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            giveResult(message, index, value);
          }}
        >
          <label>
            Result to send back
            <textarea class="mono" rows={2} value={value} disabled={busy} onInput={(event) => setValue(event.currentTarget.value)} />
          </label>
          <div class="row">
            <button type="submit" class="primary" disabled={busy}>
              Send result
            </button>
          </div>
        </form>
      )}
    </section>
  );
}

function Figures({ stats, finish }: { stats: Stats; finish: string | undefined }) {
  const speed = stats.seconds > 0 && stats.completion > 1 ? (stats.completion - 1) / stats.seconds : 0;
  const items = [
    tokens(stats.completion),
    speed > 0 ? `${speed < 9.95 ? speed.toFixed(1) : Math.round(speed)} tokens/s` : "",
    `first after ${stats.first < 0.995 ? `${Math.round(stats.first * 1000)} ms` : seconds(stats.first)}`,
    `prompt ${count.format(stats.prompt)}${stats.cached > 0 ? `, ${count.format(stats.cached)} cached` : ""}`,
    finish === "length" ? "cut at the limit" : "",
  ];
  return <span class="figures">{items.filter((item) => item !== "").join(" · ")}</span>;
}

// Drawn again only when the text is another one.
function Body({ text }: { text: string }) {
  return useMemo(() => <Markdown text={text} />, [text]);
}

export function Assistant({ message, live, busy, last }: { message: AssistantMessage; live: boolean; busy: boolean; last: boolean }) {
  const thinkingNow = live && message.text === "" && message.calls.length === 0;
  const cutShort = message.finish === "length" || message.finish === "stopped";
  const some = message.text !== "" || (message.reasoning ?? "") !== "";
  return (
    <article class="assistant" aria-label="Answer" aria-busy={live}>
      {message.reasoning !== undefined && <Thinking message={message} live={thinkingNow} />}
      {thinkingNow && message.reasoning === undefined && <div class="waiting" aria-hidden="true" />}
      {message.text !== "" && <Body text={message.text} />}
      {message.calls.map((call, i) => (
        <ToolCall key={call.id || i} message={message} call={call} index={i} busy={busy} live={live} />
      ))}
      {message.error && <p class="fault">{message.error}</p>}
      {message.warning && <p class="note">{message.warning}</p>}
      {!live && (
        <div class="actions">
          {message.stats ? <Figures stats={message.stats} finish={message.finish} /> : message.finish === "stopped" && <span class="figures">stopped</span>}
          <span class="buttons">
            {message.text !== "" && <CopyButton text={message.text} label="Copy" />}
            {last && cutShort && some && message.calls.length === 0 && (
              <button class="quiet go-on" disabled={busy} onClick={() => goOn(message)}>
                Continue
              </button>
            )}
            <button class="quiet again" disabled={busy} onClick={() => regenerate(message)}>
              Regenerate
            </button>
          </span>
        </div>
      )}
    </article>
  );
}
