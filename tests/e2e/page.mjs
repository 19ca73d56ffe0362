// The chat page of `triax serve` in headless Chromium, with screenshots.
//
//   node page.mjs TRIAX MODEL SCREENSHOTS [PART OF A NAME]
//
// Any model with chat tokens does; what it says is not looked at. tests/e2e/clients.sh runs it.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Browser } from "./browser.mjs";
import { runChecks } from "./checks.mjs";
import { Server } from "./server.mjs";
import { conversation } from "./page_example.mjs";

const [binary, model, shots, only] = process.argv.slice(2);
mkdirSync(shots, { recursive: true });
const server = await Server.start(binary, model);
const browser = await Browser.start();
const page = await browser.page(server.base + "/");
const shot = (name) => page.screenshot(join(shots, `${name}.png`));

const kAnswer = "article.assistant:last-of-type";
const text = (selector) => page.run(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ""`);
const count = (selector) => page.run(`document.querySelectorAll(${JSON.stringify(selector)}).length`);
const click = (selector) => page.run(`(() => { const e = document.querySelector(${JSON.stringify(selector)});
  e.focus(); e.click(); })()`);
const focused = () => page.run(`(() => { const e = document.activeElement;
  return e.getAttribute("aria-label") ?? e.closest("label")?.querySelector("span")?.innerText ?? e.innerText; })()`);
const whole = () => page.until(`!document.querySelector(".stop") && !document.querySelector(".live")`, "the answer is whole");

// Settings as a user would have left them, and a page without conversations.
async function fresh(settings = {}) {
  await page.run(`localStorage.clear(); localStorage.setItem("triax.settings",
    ${JSON.stringify(JSON.stringify({ effort: "none", maxTokens: "24", seed: "1", ...settings }))})`);
  page.faults.length = page.requests.length = 0;
  await page.open();
  await page.until(`document.querySelector(".model")`, "the model's name is shown");
}
async function say(words) {
  await page.run(`document.getElementById("message").focus()`);
  await page.type(words);
  await page.press("Enter");
}
async function metric(name) {
  const all = await (await fetch(server.base + "/metrics")).text();
  return Number(new RegExp(`^${name} (.*)$`, "m").exec(all)[1]);
}
const bodies = () => page.requests.filter((r) => r.method === "POST").map((r) => JSON.parse(r.postData));

// Contrast of an element's text with what is behind it (WCAG 2.2).
const kContrast = `(selector) => {
  const e = document.querySelector(selector);
  const parse = (c) => (c.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  let behind = e;
  while (behind && (parse(getComputedStyle(behind).backgroundColor)[3] ?? 1) === 0) behind = behind.parentElement;
  const back = light(parse(getComputedStyle(behind ?? document.body).backgroundColor)), ink = light(parse(getComputedStyle(e).color));
  return (Math.max(back, ink) + 0.05) / (Math.min(back, ink) + 0.05);
}`;

const checks = {
  async "GET / has its policy, its version, and no more than that to fetch"() {
    const answer = await fetch(server.base + "/");
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get("content-type"), "text/html; charset=utf-8");
    assert.match(answer.headers.get("content-security-policy"), /^default-src 'none'; script-src 'sha256-[^;]*'; style-src 'sha256-/);
    assert.equal(answer.headers.get("cache-control"), "no-cache");
    const html = await answer.text(), etag = answer.headers.get("etag");
    const head = await fetch(server.base + "/", { method: "HEAD" });
    assert.equal(head.status, 200);
    assert.equal(head.headers.get("etag"), etag);
    assert.equal(Number(head.headers.get("content-length")), Buffer.byteLength(html));
    assert.equal(await head.text(), "");
    const known = await fetch(server.base + "/", { headers: { "if-none-match": etag } });
    assert.equal(known.status, 304);
    assert.equal(known.headers.get("content-length"), null);
    assert.equal((await fetch(server.base + "/", { method: "POST" })).status, 405);
    assert.equal((await fetch(server.base + "/nothing")).status, 404);
  },

  async "an empty page names the model and waits in the message box"() {
    await fresh();
    assert.equal(await focused(), "Message");
    assert.ok((await text(".model")).length > 0);
    await shot("empty");
  },

  async "a message is answered while it is written"() {
    await fresh({ maxTokens: "120" });
    await page.run(`window.seen = []; new MutationObserver(() => {
      const length = document.querySelector("${kAnswer} .markdown")?.innerText.length ?? 0;
      if (length !== window.seen.at(-1)) window.seen.push(length);
    }).observe(document.body, { subtree: true, childList: true, characterData: true })`);
    await say("hello");
    assert.equal(await page.run(`document.getElementById("message").value`), "");
    await page.until(`document.querySelector(".stop") && window.seen.length > 3`, "the text grows");
    await shot("streaming");
    await whole();
    const seen = await page.run(`window.seen`);
    assert.ok(seen.length > 5, `seen: ${seen}`);
    assert.match(await text(`${kAnswer} .figures`), /^120 tokens · [\d.]+ tokens\/s · first after .* · prompt \d+ · cut at the limit$/);
    assert.equal(await text("article.user .bubble"), "hello");
    assert.equal(await text(".sidebar .current .title"), "hello");
    assert.match(await text("[role=status]"), /^Answer: /);
    assert.equal((await bodies())[0].thinking.type, "disabled");
  },

  async "Shift-Enter breaks the line"() {
    await fresh();
    await page.type("one");
    await page.press("Enter", { shift: true });
    await page.type("two");
    assert.equal(await page.run(`document.getElementById("message").value`), "one\ntwo");
    await page.press("Enter");
    await whole();
    assert.equal(bodies()[0].messages[0].content, "one\ntwo");
  },

  async "Escape stops, the server too, and Continue goes on"() {
    await fresh({ maxTokens: "" });
    await say("tell me a long story");
    await page.until(`(document.querySelector("${kAnswer} .markdown")?.innerText.length ?? 0) > 20`);
    await page.press("Escape");
    await whole();
    assert.match(await text(`${kAnswer} .figures`), /stopped/);
    for (let i = 0; (await metric("triax_sequences_running")) > 0; ++i) assert.ok(i < 500);
    const before = await page.run(`JSON.parse(localStorage.getItem(Object.keys(localStorage).find((k) => k.startsWith("triax.conv")))).messages[1].text`);
    assert.ok(before.length > 20, "what was written is kept");
    await page.run(`localStorage.setItem("triax.settings", localStorage.getItem("triax.settings").replace('"maxTokens":""', '"maxTokens":"16"'))`);
    await page.open();
    await page.until(`document.querySelector(".model")`);
    await click(".go-on");
    await page.until(`document.querySelector(".figures")?.innerText.startsWith("16 tokens")`, "the answer went on");
    const { messages } = bodies().at(-1);
    assert.equal(messages.at(-1).partial, true);
    assert.equal(messages.at(-1).content, before);
    assert.equal(await count("article.assistant"), 1);
  },

  async "thinking is folded, with its time and length"() {
    await fresh({ effort: "low", maxTokens: "40" });
    await say("think");
    await page.until(`document.querySelector(".thinking.live summary")?.innerText.startsWith("Thinking · ")`, "it thinks");
    await whole();
    assert.match(await text(".thinking summary"), /^Thought for [\d.]+ s · \d+ tokens$/);
    assert.equal(await page.run(`document.querySelector(".thinking").open`), false);
    await page.run(`document.querySelector(".thinking summary").focus()`);
    await page.press("Enter");
    await page.until(`document.querySelector(".thinking").open && document.querySelector(".thought").innerText.length > 10`);
    assert.equal(bodies()[0].thinking.effort, "low");
    await shot("thinking");
  },

  async "a reload keeps the conversation; a second turn is cached"() {
    await fresh();
    await say("first");
    await whole();
    await page.open();
    await page.until(`document.querySelector(".model")`);
    assert.equal(await text("article.user .bubble"), "first");
    const answer = await text(`${kAnswer} .markdown`);
    assert.ok(answer.length > 0);
    page.requests.length = 0;
    await say("second");
    await whole();
    assert.match(await text(`${kAnswer} .figures`), /, \d+ cached/);
    assert.equal(bodies()[0].messages.length, 3);
  },

  async "conversations: several, deleted, and had back"() {
    await fresh();
    await say("one");
    await whole();
    await click(".begin");
    assert.equal(await count("article"), 0);
    assert.equal(await focused(), "Message");
    await say("two");
    await whole();
    assert.equal(await count(".sidebar li"), 2);
    await click(".sidebar li:nth-child(2) .title");
    assert.equal(await text("article.user .bubble"), "one");
    await click(".sidebar .current .delete");
    assert.equal(await count(".sidebar li"), 1);
    assert.equal(await count("article"), 0);
    await click(".toast button");
    assert.equal(await count(".sidebar li"), 2);
    assert.equal(await text("article.user .bubble"), "one");
    await click(".sidebar li:not(.current) .delete");
    await page.open();
    assert.equal(await count(".sidebar li"), 1);
  },

  async "a message is edited, an answer written anew"() {
    await fresh({ seed: "" });
    await say("one");
    await whole();
    await say("two");
    await whole();
    await page.run(`document.getElementById("message").focus()`);
    await page.press("ArrowUp");
    await page.until(`document.activeElement.getAttribute("aria-label") === "Edit your message"`);
    await page.press("Escape");
    await page.until(`!document.querySelector(".editor")`);
    await click("article.user .edit");
    await page.until(`document.activeElement.getAttribute("aria-label") === "Edit your message"`);
    await page.type("!");
    await page.press("Enter");
    await whole();
    assert.equal(await text("article.user .bubble"), "one!");
    assert.equal(await count("article"), 2);
    await click(".toast button");
    assert.equal(await count("article"), 4);
    assert.equal(await text("article.user .bubble"), "one");
    const before = await text(`${kAnswer} .markdown`);
    await click(`${kAnswer} .again`);
    await whole();
    assert.equal(await count("article"), 4);
    assert.notEqual(await text(`${kAnswer} .markdown`), before);
  },

  async "a tool is called, and its result goes back"() {
    const tools = [{ type: "function", function: { name: "weather", description: "Weather of a day", parameters: {
      type: "object", additionalProperties: false, required: ["day"], properties: { day: { type: "integer", minimum: 1, maximum: 9 } } } } }];
    await fresh({ tools: JSON.stringify(tools), toolChoice: "required", maxTokens: "400", temperature: "0" });
    // The closing token of K3, made likely: a random model would talk on to the limit.
    await page.run(`(() => { const go = window.fetch; window.fetch = (url, init) => { if (init?.body) {
      const body = JSON.parse(init.body); body.logit_bias = { 163588: 100 }; init.body = JSON.stringify(body); } return go(url, init); }; })()`);
    await say("weather?");
    await page.until(`document.querySelector(".call form")`, "the page asks for the result");
    await whole();
    assert.equal(await text(".call header code"), "weather");
    assert.match(await text(".call pre"), /"day": \d/);
    await shot("tool");
    await page.run(`document.querySelector(".call textarea").focus()`);
    await page.type("rain");
    await page.press("Tab");
    await page.press("Enter");
    await page.until(`document.querySelectorAll("article.assistant").length === 2`);
    await whole();
    const { messages } = bodies().at(-1);
    assert.equal(messages[2].role, "tool");
    assert.equal(messages[2].content, "rain");
    assert.equal(messages[2].tool_call_id, messages[1].tool_calls[0].id);
    assert.match(await text(".call .result"), /rain/);
  },

  async "settings by keyboard; an error is one clear line"() {
    await fresh({ maxTokens: "8" });
    await click("[aria-label=Settings]");
    await page.until(`document.querySelector("dialog.settings").open`);
    for (let i = 0; (await focused()) !== "Temperature"; ++i) {
      assert.ok(i < 5);
      await page.press("Tab");
    }
    await page.type("9");
    await shot("settings");
    await page.press("Escape");
    await page.until(`!document.querySelector("dialog[open]")`);
    page.faults.length = 0;
    await say("hello");
    await page.until(`document.querySelector("[role=alert]")?.innerText.includes("temperature")`, "the error is shown");
    assert.equal((await text("[role=alert]")).includes("\n"), false);
    assert.equal(await text("article.user .bubble"), "hello");
    page.faults.length = 0; // the browser notes the 400
    await shot("error");
  },

  async "every control has a name and is reached by Tab"() {
    await fresh();
    await page.run(`localStorage.setItem("triax.conversation.x", ${JSON.stringify(JSON.stringify(conversation()))})`);
    await page.run(`localStorage.setItem("triax.current", '"x"')`);
    await page.open();
    await page.until(`document.querySelector(".model")`);
    const controls = await page.controls();
    assert.ok(controls.length > 12);
    assert.deepEqual(controls.filter((c) => c.name.trim() === ""), []);
    // To the very beginning: after blur() alone, Tab goes on from where the focus was.
    await page.run(`document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute("tabindex")`);
    const seen = [];
    for (let i = 0; i < 60 && !seen.includes("Message"); ++i) {
      await page.press("Tab");
      seen.push(await focused());
    }
    assert.equal(seen[0].trim(), "To the message box");
    for (const name of ["New conversation", "Settings", "Copy", "Edit", "Regenerate", "Message"]) {
      assert.ok(seen.some((s) => s.trim() === name), `${name} is not among: ${seen}`);
    }
    const outline = await page.run(`getComputedStyle(document.activeElement.closest("form")).borderTopColor`);
    assert.ok(outline);
  },

  async "text of an answer is never markup"() {
    const c = conversation();
    c.messages.push({ id: "e", role: "assistant", calls: [], text:
      `<img src=x onerror="window.broken=1"> [a](javascript:window.broken=1) <script>window.broken=1</script> [b](https://example.org/)` });
    await fresh();
    await page.run(`localStorage.setItem("triax.conversation.x", ${JSON.stringify(JSON.stringify(c))})`);
    await page.run(`localStorage.setItem("triax.current", '"x"')`);
    await page.open();
    await page.until(`document.querySelector(".model")`);
    assert.equal(await count("article img, article script"), 0);
    assert.equal(await page.run(`Array.from(document.querySelectorAll("${kAnswer} a"), (a) => a.href).join()`), "https://example.org/");
    assert.match(await text(`${kAnswer} .markdown`), /<img src=x onerror/);
    assert.equal(await page.run(`window.broken`), undefined);
    await assert.rejects(page.run(`fetch("http://127.0.0.1:9/")`), "the policy lets the page reach its server alone");
    page.faults.length = 0;
  },

  async "light and dark, by the system and by the switch"() {
    await fresh();
    await page.run(`localStorage.setItem("triax.conversation.x", ${JSON.stringify(JSON.stringify(conversation()))})`);
    await page.run(`localStorage.setItem("triax.current", '"x"')`);
    const back = () => page.run(`getComputedStyle(document.body).backgroundColor`);
    const colours = {};
    for (const scheme of ["light", "dark"]) {
      await page.scheme(scheme);
      await page.size(1080, 720);
      await page.open();
      await page.until(`document.querySelector(".model")`);
      colours[scheme] = await back();
      for (const part of [".bubble", ".markdown", ".figures", ".thinking summary", ".sidebar .title", ".composer textarea", "#keys",
        ".call header .faint", ".code figcaption", ".markdown a"]) {
        const contrast = await page.run(`(${kContrast})("${part}")`);
        assert.ok(contrast >= 4.5, `${part} in ${scheme}: ${contrast}`);
      }
      await shot(scheme);
    }
    assert.notEqual(colours.light, colours.dark);
    await click(".theme"); // system, light, dark
    assert.equal(await back(), colours.light);
    await page.scheme("light");
    await click(".theme");
    assert.equal(await back(), colours.dark);
    await page.open();
    assert.equal(await back(), colours.dark, "kept");
    await page.size(1280, 800);
  },

  async "narrow screens"() {
    await fresh();
    await page.run(`localStorage.setItem("triax.conversation.x", ${JSON.stringify(JSON.stringify(conversation()))})`);
    await page.run(`localStorage.setItem("triax.current", '"x"')`);
    await page.size(360, 740, true);
    await page.open();
    await page.until(`document.querySelector(".model")`);
    assert.ok(await page.run(`document.documentElement.scrollWidth <= 360 &&
      document.querySelector(".thread").scrollWidth <= 360`), "nothing is wider than the screen");
    assert.equal(await page.run(`document.querySelector(".sidebar").inert`), true);
    await shot("narrow");
    await click(".menu");
    await page.until(`!document.querySelector(".sidebar").inert`);
    await shot("narrow-menu");
    await page.press("Escape");
    await page.until(`document.querySelector(".sidebar").inert`);
    await click("[aria-label=Settings]");
    await shot("narrow-settings");
    assert.ok(await page.run(`document.querySelector("dialog.settings .sheet").scrollWidth <= 360`));
    await page.press("Escape");
    await page.size(1280, 800);
  },

  async "a server with a key: the page loads and asks for it"() {
    const locked = await Server.start(binary, model, ["--api-key", "secret"]);
    try {
      const other = await browser.page(locked.base + "/");
      await other.until(`document.querySelector("dialog.key")?.open`, "the page asks for the key");
      await other.type("wrong");
      await other.press("Enter");
      await other.until(`document.querySelector("dialog.key [role=alert]").innerText.includes("not known")`);
      await other.screenshot(join(shots, "key.png"));
      await other.run(`document.querySelector("dialog.key input").select()`);
      await other.type("secret");
      await other.press("Enter");
      await other.until(`!document.querySelector("dialog[open]") && document.querySelector(".model")`, "the key is taken");
    } finally {
      await locked.stop();
    }
  },

  async "nothing was asked of anyone else, and nothing went wrong unseen"() {
    await fresh();
    await say("hello");
    await whole();
    assert.deepEqual(page.requests.map((r) => r.url).filter((u) => !u.startsWith(server.base + "/") && !u.startsWith("data:")), []);
    assert.deepEqual(page.faults, []);
  },

  async "a server that is gone is named"() {
    await fresh();
    await server.stop();
    await say("hello");
    await page.until(`document.querySelector("[role=alert]")?.innerText.includes("does not answer")`, "the error is shown");
  },
};

try {
  await runChecks(checks, only);
} finally {
  await browser.close();
  await server.stop();
}
