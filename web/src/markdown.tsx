// Markdown as models write it, to elements: paragraphs, headings, lists, quotes, tables, fenced code,
// rules, emphasis, code, links. Nothing is ever taken as HTML.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";

export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [done, setDone] = useState("");
  return (
    <button
      class="quiet"
      onClick={async () => {
        setDone((await copy(text)) ? "Copied" : "The browser does not let this page copy");
        setTimeout(() => setDone(""), 1500);
      }}
    >
      {done || label}
    </button>
  );
}

// --- within a line --------------------------------------------------------------------------------

const kInline =
  /(`+)([\s\S]*?[^`])\1(?!`)|\*\*([^\s*](?:[\s\S]*?[^\s*])?)\*\*|(?<![\w*])\*([^\s*](?:[^*]*?[^\s*])?)\*(?![\w*])|(?<![\w_])_([^\s_](?:[^_]*?[^\s_])?)_(?!\w)|~~([^~]+)~~|\[([^\]\n]*)\]\(([^)\s]+)\)|(https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]])|\\([!-/:-@[-`{-~])/g;

function safe(url: string): boolean {
  return /^(https?:|mailto:)/i.test(url);
}

function link(url: string, text: ComponentChildren): ComponentChildren {
  if (!safe(url)) return text;
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {text}
    </a>
  );
}

function inline(text: string, depth = 0): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let at = 0;
  if (depth < 6) {
    for (const m of text.matchAll(kInline)) {
      if (m.index > at) out.push(text.slice(at, m.index));
      at = m.index + m[0].length;
      if (m[2] !== undefined) out.push(<code>{m[2].replace(/^ (.*) $/s, "$1")}</code>);
      else if (m[3] !== undefined) out.push(<strong>{inline(m[3], depth + 1)}</strong>);
      else if (m[4] ?? m[5]) out.push(<em>{inline((m[4] ?? m[5])!, depth + 1)}</em>);
      else if (m[6] !== undefined) out.push(<del>{inline(m[6], depth + 1)}</del>);
      else if (m[8] !== undefined) out.push(link(m[8], inline(m[7] ?? "", depth + 1)));
      else if (m[9] !== undefined) out.push(link(m[9], m[9]));
      else out.push(m[10]);
    }
  }
  if (at < text.length) out.push(text.slice(at));
  return out;
}

// --- blocks ---------------------------------------------------------------------------------------

const kFence = /^( {0,3})(`{3,}|~{3,})\s*([^`]*)$/;
const kItem = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const kRule = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const kHeading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const kTableRule = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function Code({ text, language }: { text: string; language: string }) {
  return (
    <figure class="code">
      <figcaption>
        <span>{language}</span>
        <CopyButton text={text} label="Copy" />
      </figcaption>
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
    </figure>
  );
}

function cells(line: string): string[] {
  const inner = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));
}

function Table({ lines }: { lines: string[] }) {
  const head = cells(lines[0]!);
  const sides = cells(lines[1]!).map((c) =>
    c.endsWith(":") ? (c.startsWith(":") ? "center" : "right") : "left",
  );
  const cell = (Tag: "th" | "td") => (text: string, i: number) => (
    <Tag class={`to-${sides[i] ?? "left"}`}>{inline(text)}</Tag>
  );
  return (
    <div class="table" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>{head.map(cell("th"))}</tr>
        </thead>
        <tbody>
          {lines.slice(2).map((line) => (
            <tr>{cells(line).map(cell("td"))}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// One list from lines[at]; returns where it ends.
function list(lines: string[], at: number, depth: number): [JSX.Element, number] {
  const first = kItem.exec(lines[at]!)!;
  const indent = first[1]!.length;
  const ordered = /\d/.test(first[2]!);
  const items: ComponentChildren[] = [];
  while (at < lines.length) {
    const m = kItem.exec(lines[at]!);
    if (!m || m[1]!.length !== indent || /\d/.test(m[2]!) !== ordered || kRule.test(lines[at]!)) break;
    const own = [m[3]!];
    for (++at; at < lines.length; ++at) {
      const line = lines[at]!;
      const deeper = /^\s*/.exec(line)![0].length > indent;
      const next = lines[at + 1] ?? "";
      if (line.trim() === "") {
        if (!/^\s/.test(next) || /^\s*/.exec(next)![0].length <= indent) break;
      } else if (!deeper && (kItem.test(line) || own.at(-1)?.trim() === "" || startsBlock(line))) {
        break;
      }
      own.push(line.slice(Math.min(/^\s*/.exec(line)![0].length, indent + m[2]!.length + 1)));
    }
    items.push(<li>{tight(blocks(own, depth + 1))}</li>);
    // A blank line between two items leaves one list.
    const after = lines[at + 1];
    if (at < lines.length && lines[at]!.trim() === "" && after !== undefined) {
      const again = kItem.exec(after);
      if (again && again[1]!.length === indent && /\d/.test(again[2]!) === ordered) ++at;
    }
  }
  const start = ordered ? parseInt(first[2]!, 10) : 1;
  return [ordered ? <ol start={start}>{items}</ol> : <ul>{items}</ul>, at];
}

// An item of one paragraph needs none.
function tight(all: JSX.Element[]): ComponentChildren {
  const first = all[0];
  return first?.type === "p" ? [first.props.children, ...all.slice(1)] : all;
}

function startsBlock(line: string): boolean {
  return kFence.test(line) || kHeading.test(line) || kRule.test(line) || /^ {0,3}>/.test(line);
}

function fenced(lines: string[], at: number): [JSX.Element, number] {
  const [, indent, fence, language] = kFence.exec(lines[at]!)!;
  const own: string[] = [];
  const end = new RegExp(`^ {0,3}${fence![0]}{${fence!.length},}\\s*$`);
  for (++at; at < lines.length && !end.test(lines[at]!); ++at) {
    own.push(lines[at]!.replace(new RegExp(`^ {0,${indent!.length}}`), ""));
  }
  return [<Code text={own.join("\n")} language={language!.trim().split(/\s/)[0] ?? ""} />, at + 1];
}

function paragraph(lines: string[], at: number): [JSX.Element, number] {
  const own: string[] = [];
  for (; at < lines.length; ++at) {
    const line = lines[at]!;
    if (line.trim() === "" || (own.length > 0 && (startsBlock(line) || kItem.test(line)))) break;
    own.push(line.replace(/^\s+/, ""));
  }
  return [<p>{inline(own.join("\n"))}</p>, at];
}

function blocks(lines: string[], depth = 0): JSX.Element[] {
  const out: JSX.Element[] = [];
  let at = 0;
  const take = ([element, next]: [JSX.Element, number]) => {
    out.push(element);
    at = next;
  };
  while (at < lines.length) {
    const line = lines[at]!;
    const heading = kHeading.exec(line);
    if (line.trim() === "") ++at;
    else if (kFence.test(line)) take(fenced(lines, at));
    else if (heading) {
      // The page's own headings are levels 1 and 2.
      const Tag = `h${Math.min(6, heading[1]!.length + 2)}` as "h3";
      take([<Tag>{inline(heading[2]!)}</Tag>, at + 1]);
    } else if (kRule.test(line)) take([<hr />, at + 1]);
    else if (/^ {0,3}>/.test(line) && depth < 8) {
      let end = at;
      while (end < lines.length && /^ {0,3}>/.test(lines[end]!)) ++end;
      const own = lines.slice(at, end).map((l) => l.replace(/^ {0,3}> ?/, ""));
      take([<blockquote>{blocks(own, depth + 1)}</blockquote>, end]);
    } else if (kItem.test(line) && depth < 8) take(list(lines, at, depth));
    else if (line.includes("|") && kTableRule.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("|")) {
      let end = at + 2;
      while (end < lines.length && lines[end]!.includes("|")) ++end;
      take([<Table lines={lines.slice(at, end)} />, end]);
    } else take(paragraph(lines, at));
  }
  return out;
}

export function Markdown({ text }: { text: string }) {
  return <div class="markdown">{blocks(text.replace(/\r\n?/g, "\n").split("\n"))}</div>;
}
