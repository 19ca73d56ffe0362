// Headless Chromium over its debugging protocol: as much of it as the test of the page needs.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import WebSocket from "ws";

const kKeys = {
  Enter: ["Enter", 13, "\r"], Escape: ["Escape", 27], Tab: ["Tab", 9], Backspace: ["Backspace", 8], ArrowUp: ["ArrowUp", 38],
  ArrowDown: ["ArrowDown", 40], Space: ["Space", 32, " "],
};
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export class Browser {
  // Reaches nothing but this machine.
  static async start() {
    const out = new Browser();
    out.folder = mkdtempSync(join(tmpdir(), "triax-page-"));
    out.child = spawn(process.env.CHROMIUM ?? "chromium", [
      "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-sync",
      "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--hide-scrollbars",
      "--force-color-profile=srgb", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
      `--user-data-dir=${out.folder}`, "--remote-debugging-port=0", "about:blank"], { stdio: "ignore" });
    const file = join(out.folder, "DevToolsActivePort");
    for (let i = 0; !existsSync(file) || readFileSync(file, "utf8").split("\n").length < 2; ++i) {
      if (i > 1200 || out.child.exitCode !== null) throw new Error("chromium did not start");
      await pause(50);
    }
    const [port, path] = readFileSync(file, "utf8").trim().split("\n");
    out.socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { perMessageDeflate: false });
    await new Promise((done, fail) => out.socket.once("open", done).once("error", fail));
    out.socket.on("message", (text) => out.receive(JSON.parse(text)));
    return out;
  }

  constructor() {
    this.last = 0;
    this.waiting = new Map();
    this.pages = new Map();
  }

  receive(message) {
    if (message.id === undefined) {
      this.pages.get(message.sessionId)?.event(message.method, message.params);
      return;
    }
    const { done, fail } = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (message.error) fail(new Error(message.error.message));
    else done(message.result);
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.last;
    this.socket.send(JSON.stringify({ id, method, params, sessionId }));
    return new Promise((done, fail) => this.waiting.set(id, { done, fail }));
  }

  async page(url) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId);
    this.pages.set(sessionId, page);
    for (const domain of ["Page", "Runtime", "Log", "Network", "Accessibility"]) await page.send(`${domain}.enable`);
    await page.size(1280, 800);
    await page.open(url);
    return page;
  }

  async close() {
    const ended = new Promise((done) => this.child.once("exit", done));
    await this.send("Browser.close").catch(() => undefined);
    await ended;
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Page {
  constructor(browser, session) {
    Object.assign(this, { browser, session, faults: [], requests: [] });
  }

  event(method, p) {
    if (method === "Runtime.exceptionThrown") this.faults.push(p.exceptionDetails.exception?.description ?? p.exceptionDetails.text);
    if (method === "Log.entryAdded" && p.entry.level === "error") this.faults.push(`${p.entry.text} ${p.entry.url ?? ""}`);
    if (method === "Network.requestWillBeSent") this.requests.push(p.request);
    if (method === "Page.loadEventFired") this.loaded?.();
  }

  send(method, params) {
    return this.browser.send(method, params, this.session);
  }

  async open(url) {
    const loaded = new Promise((done) => { this.loaded = done; });
    await (url ? this.send("Page.navigate", { url }) : this.send("Page.reload"));
    await loaded;
  }

  async run(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate",
      { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  // Until the expression is true; what it was is returned.
  async until(expression, what = expression, seconds = 60) {
    for (let i = 0; i < seconds * 25; ++i) {
      const value = await this.run(expression);
      if (value) return value;
      await pause(40);
    }
    throw new Error(`after ${seconds} s still not: ${what}`);
  }

  async press(key, { shift = false } = {}) {
    const [code, number, text] = kKeys[key];
    const event = { key: key === "Space" ? " " : key, code, windowsVirtualKeyCode: number, modifiers: shift ? 8 : 0 };
    await this.send("Input.dispatchKeyEvent", { type: text ? "keyDown" : "rawKeyDown", ...event, ...(text ? { text } : {}) });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...event });
  }

  type(text) {
    return this.send("Input.insertText", { text });
  }

  size(width, height, mobile = false) {
    return this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile });
  }

  scheme(value) {
    return this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value }] });
  }

  async screenshot(file) {
    await pause(250); // transitions
    const { data } = await this.send("Page.captureScreenshot", { format: "png", optimizeForSpeed: false });
    writeFileSync(file, Buffer.from(data, "base64"));
  }

  // Role and name of all that a screen reader can act on.
  async controls() {
    const { nodes } = await this.send("Accessibility.getFullAXTree");
    return nodes.filter((n) => !n.ignored && /^(button|textbox|combobox|spinbutton|link|DisclosureTriangle)$/.test(n.role?.value))
      .map((n) => ({ role: n.role.value, name: n.name?.value ?? "" }));
  }
}
