// The page: conversations at the left, the one at hand, and the box to write in.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Bin, Down, Half, Mark, Menu, Moon, Plus, Sliders, Square, Sun, Up } from "./icons";
import { Assistant, grow, tokens, User } from "./message";
import { KeyDialog, SettingsDialog } from "./settings";
import { begin, change, connect, open, remove, send, stop, use } from "./state";
import type { Conversation, Effort, Theme } from "./types";

const kNarrow = matchMedia("(max-width: 800px)");

function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(kNarrow.matches);
  useEffect(() => {
    const call = () => setNarrow(kNarrow.matches);
    kNarrow.addEventListener("change", call);
    return () => kNarrow.removeEventListener("change", call);
  }, []);
  return narrow;
}

function Sidebar({ shown, narrow, done }: { shown: boolean; narrow: boolean; done: () => void }) {
  const { conversations, current, run } = use();
  const pick = (c: Conversation) => {
    open(c);
    done();
  };
  return (
    <nav id="conversations" class={shown ? "sidebar shown" : "sidebar"} aria-label="Conversations" inert={narrow && !shown}>
      <header>
        <Mark />
        <h1>triax</h1>
      </header>
      <button
        class="begin"
        onClick={() => {
          begin();
          done();
          document.getElementById("message")?.focus();
        }}
      >
        <Plus /> New conversation
      </button>
      <ul>
        {conversations.map((c) => (
          <li key={c.id} class={c === current ? "current" : ""}>
            <button class="title" aria-current={c === current ? "true" : undefined} onClick={() => pick(c)}>
              {run?.conversation === c && <span class="pulse" aria-label="being answered" />}
              <span>{c.title || "Untitled"}</span>
            </button>
            <button class="icon delete" aria-label={`Delete ${c.title || "this conversation"}`} onClick={() => remove(c)}>
              <Bin />
            </button>
          </li>
        ))}
      </ul>
      {conversations.length === 0 && <p class="faint">Conversations are kept here, in this browser.</p>}
    </nav>
  );
}

const kThemes: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

function ThemeButton() {
  const { settings } = use();
  const said = { system: "as the system", light: "light", dark: "dark" }[settings.theme];
  return (
    <button class="icon theme" aria-label={`Colours: ${said}. Change`} title={`Colours: ${said}`} onClick={() => change({ theme: kThemes[settings.theme] })}>
      {settings.theme === "system" ? <Half /> : settings.theme === "light" ? <Sun /> : <Moon />}
    </button>
  );
}

function Composer() {
  const { settings, run, current } = use();
  const [text, setText] = useState("");
  const area = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => grow(area.current), [text]);
  useEffect(() => area.current?.focus(), [current.id]);
  const submit = () => {
    if (run || text.trim() === "") return;
    send(text);
    setText("");
  };
  const editLast = () => {
    const all = document.querySelectorAll<HTMLButtonElement>("article.user .edit");
    all[all.length - 1]?.click();
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <textarea
        id="message"
        ref={area}
        rows={1}
        aria-label="Message"
        aria-describedby="keys"
        placeholder="Write a message"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.isComposing) return;
          if (event.key === "Enter" && !event.shiftKey) {
            event.preventDefault();
            submit();
          } else if (event.key === "ArrowUp" && text === "") {
            event.preventDefault();
            editLast();
          }
        }}
      />
      <div class="bar">
        <label class="effort">
          <span>Thinking</span>
          <select value={settings.effort} onChange={(event) => change({ effort: event.currentTarget.value as Effort })}>
            <option value="none">none</option>
            <option value="low">low</option>
            <option value="high">high</option>
            <option value="max">max</option>
          </select>
        </label>
        <span id="keys" class="faint">
          {run ? "Escape stops" : "Enter sends, Shift-Enter breaks the line"}
        </span>
        {run ? (
          <button type="button" class="round stop" aria-label="Stop" onClick={stop}>
            <Square />
          </button>
        ) : (
          <button type="submit" class="round send" aria-label="Send" disabled={text.trim() === ""}>
            <Up />
          </button>
        )}
      </div>
    </form>
  );
}

// Stays at the end while the reader is there.
function Thread() {
  const { current, run } = use();
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const [away, setAway] = useState(false);
  const toEnd = () => box.current?.scrollTo({ top: box.current.scrollHeight });
  useLayoutEffect(() => {
    atEnd.current = true;
    toEnd();
  }, [current.id, current.messages.length]);
  useLayoutEffect(() => {
    if (atEnd.current) toEnd();
  });
  const onScroll = () => {
    const b = box.current!;
    atEnd.current = b.scrollHeight - b.scrollTop - b.clientHeight < 60;
    setAway(!atEnd.current);
  };
  const last = current.messages.length - 1;
  return (
    <div class="thread-frame">
      <div class="thread" ref={box} onScroll={onScroll} tabIndex={-1}>
        <div class="column">
          {current.messages.length === 0 && (
            <div class="welcome">
              <Mark size={56} />
              <p>Ask something.</p>
            </div>
          )}
          {current.messages.map((m, i) =>
            m.role === "user" ? (
              <User key={m.id} message={m} busy={run !== undefined} />
            ) : (
              <Assistant key={m.id} message={m} live={run?.message === m} busy={run !== undefined} last={i === last} />
            ),
          )}
        </div>
      </div>
      {away && (
        <button class="round to-end" aria-label="To the end" onClick={toEnd}>
          <Down />
        </button>
      )}
    </div>
  );
}

function ContextUse() {
  const { model, current } = use();
  const stats = current.messages.flatMap((m) => (m.role === "assistant" && m.stats ? [m.stats] : [])).at(-1);
  if (!model) return null;
  const used = stats ? stats.prompt + stats.completion : 0;
  return (
    <span class="model">
      <strong>{model.id}</strong>
      {used > 0 && model.context > 0 && (
        <span class="faint context"> {new Intl.NumberFormat("en").format(used)} of {tokens(model.context)}</span>
      )}
    </span>
  );
}

function Toast() {
  const { notice } = use();
  if (!notice) return null;
  return (
    <div class="toast">
      {notice.text}
      {notice.undo && (
        <button class="quiet" onClick={notice.undo}>
          Undo
        </button>
      )}
    </div>
  );
}

export function App() {
  const { error, said, run } = use();
  const narrow = useNarrow();
  const [menu, setMenu] = useState(false);
  const [settings, setSettings] = useState(false);
  useEffect(() => {
    void connect();
  }, []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
      if (run) stop();
      else setMenu(false);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [run]);
  return (
    <div class="app">
      <a class="skip" href="#message" onClick={(event) => (event.preventDefault(), document.getElementById("message")?.focus())}>
        To the message box
      </a>
      <Sidebar shown={menu} narrow={narrow} done={() => setMenu(false)} />
      {narrow && menu && <div class="shade" onClick={() => setMenu(false)} />}
      <main>
        <header class="top">
          <button class="icon menu" aria-label="Conversations" aria-expanded={menu} aria-controls="conversations" onClick={() => setMenu(!menu)}>
            <Menu />
          </button>
          <ContextUse />
          <span class="spring" />
          <ThemeButton />
          <button class="icon" aria-label="Settings" title="Settings" onClick={() => setSettings(true)}>
            <Sliders />
          </button>
        </header>
        <Thread />
        <div class="foot">
          <div class="column">
            {error && (
              <p class="fault line" role="alert">
                {error}
              </p>
            )}
            <Composer />
          </div>
        </div>
        <Toast />
      </main>
      <div class="unseen" role="status" aria-live="polite">
        {said}
      </div>
      <SettingsDialog open={settings} close={() => setSettings(false)} />
      <KeyDialog />
    </div>
  );
}
