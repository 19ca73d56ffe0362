// The settings, and the key where the server asks for one: dialogs of the browser, which keep the
// focus within and close with Escape.
import { useEffect, useRef } from "preact/hooks";
import { Cross } from "./icons";
import { change, connect, laterKey, use } from "./state";
import { defaults } from "./store";
import type { Settings } from "./types";

function Number({ name, label, hint, min, max, step }: { name: "temperature" | "topP" | "maxTokens" | "seed"; label: string; hint: string; min?: number; max?: number; step: string }) {
  const { settings } = use();
  return (
    <label class="field">
      <span>{label}</span>
      <input type="number" inputMode="decimal" min={min} max={max} step={step} placeholder={hint} value={settings[name]} onInput={(event) => change({ [name]: event.currentTarget.value })} />
    </label>
  );
}

function Area({ name, label, hint, rows, mono }: { name: "system" | "tools"; label: string; hint: string; rows: number; mono?: boolean }) {
  const { settings } = use();
  return (
    <label class="field wide">
      <span>{label}</span>
      <textarea class={mono ? "mono" : ""} rows={rows} spellcheck={!mono} placeholder={hint} value={settings[name]} onInput={(event) => change({ [name]: event.currentTarget.value })} />
    </label>
  );
}

function useDialog(open: boolean) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open && !dialog.current?.open) dialog.current?.showModal();
    if (!open && dialog.current?.open) dialog.current.close();
  }, [open]);
  return dialog;
}

const kExample = `[{"type": "function", "function": {
  "name": "weather", "description": "Weather of a city",
  "parameters": {"type": "object", "required": ["city"],
    "properties": {"city": {"type": "string"}}}}}]`;

export function SettingsDialog({ open, close }: { open: boolean; close: () => void }) {
  const { settings } = use();
  const dialog = useDialog(open);
  const pick = <K extends "toolChoice" | "theme">(name: K, value: string) => change({ [name]: value } as Partial<Settings>);
  const leave = () => {
    close();
    void connect(); // with the key that may have changed
  };
  return (
    <dialog ref={dialog} class="settings" aria-labelledby="settings-title" onClose={leave} onClick={(event) => event.target === event.currentTarget && event.currentTarget.close()}>
      <div class="sheet">
        <header>
          <h2 id="settings-title">Settings</h2>
          <button class="icon" aria-label="Close the settings" onClick={() => dialog.current?.close()}>
            <Cross />
          </button>
        </header>
        <div class="fields">
          <Number name="temperature" label="Temperature" hint="1" min={0} max={2} step="any" />
          <Number name="topP" label="Top-p" hint="0.95" min={0} max={1} step="any" />
          <Number name="maxTokens" label="Most tokens" hint="what fits" min={1} step="1" />
          <Number name="seed" label="Seed" hint="random" step="1" />
          <Area name="system" label="System message" hint="Who the model is, and how it should answer" rows={3} />
          <Area name="tools" label="Tools (JSON; you give their results)" hint={kExample} rows={5} mono />
          <label class="field">
            <span>Tool calls</span>
            <select value={settings.toolChoice} onChange={(event) => pick("toolChoice", event.currentTarget.value)}>
              <option value="auto">when the model wants</option>
              <option value="required">always</option>
              <option value="none">never</option>
            </select>
          </label>
          <label class="field">
            <span>Colours</span>
            <select value={settings.theme} onChange={(event) => pick("theme", event.currentTarget.value)}>
              <option value="system">as the system</option>
              <option value="light">light</option>
              <option value="dark">dark</option>
            </select>
          </label>
          <label class="field wide">
            <span>API key</span>
            <input type="password" autocomplete="off" placeholder="only if the server asks for one" value={settings.key} onInput={(event) => change({ key: event.currentTarget.value.trim() })} />
          </label>
        </div>
        <footer>
          <p class="faint">Everything here stays in this browser; only requests go to the server.</p>
          <button class="plain" onClick={() => change({ ...defaults, key: settings.key, theme: settings.theme })}>
            Reset
          </button>
        </footer>
      </div>
    </dialog>
  );
}

export function KeyDialog() {
  const { needsKey, settings, error } = use();
  const dialog = useDialog(needsKey);
  return (
    <dialog ref={dialog} class="key" aria-labelledby="key-title" onClose={laterKey}>
      <form
        class="sheet"
        onSubmit={(event) => {
          event.preventDefault();
          void connect();
        }}
      >
        <h2 id="key-title">This server asks for a key</h2>
        <label class="field wide">
          <span>API key</span>
          <input type="password" required autocomplete="off" value={settings.key} onInput={(event) => change({ key: event.currentTarget.value.trim() })} />
        </label>
        <p class={error ? "fault" : "faint"} role="alert">
          {error || "The one given to `triax serve` with --api-key. It is kept in this browser."}
        </p>
        <div class="row">
          <button type="submit" class="primary">
            Continue
          </button>
        </div>
      </form>
    </dialog>
  );
}
