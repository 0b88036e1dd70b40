// The gateway's public API, as this page uses it.

import { setClock } from "./time.js";

const BASE = "api/v1/";

// JSON.parse rounds what a double cannot hold, and a person must see the number that would be sent. Such numbers become
// strings that start with a mark nobody outside this page can guess.
const MARK = Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("") + ":";
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Reads JSON without losing a digit; `numberText` tells what a value is. */
export function parse(json) {
  const exact = json.replace(TOKENS, (token) =>
    token.startsWith('"') || String(Number(token)) === token ? token : JSON.stringify(MARK + token));
  return JSON.parse(exact);
}

/** The text of a number that `parse` read, or undefined for anything else. */
export function numberText(value) {
  if (typeof value === "number") return String(value);
  if (typeof value === "string" && value.startsWith(MARK)) return value.slice(MARK.length);
  return undefined;
}

/** An answer that is not a success; `status` is 0 where there was no answer. */
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

// The browser shows its cookie to whatever else is served on this host; this key, which makes it good, only this page can
// read. Where the browser stores nothing, it lasts until the page is loaded again.
const KEY = "portcullis-key";
let key;
try {
  key = localStorage.getItem(KEY);
} catch {
  key = null;
}

const own = () => (key ? { "X-Portcullis-Key": key } : {});

async function request(method, path, body) {
  const options = { method, headers: own(), credentials: "same-origin" };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = typeof body === "string" ? body : JSON.stringify(body);
  }
  let response, text;
  try {
    response = await fetch(BASE + path, options);
    text = await response.text();
  } catch {
    throw new Problem(0, "The gateway does not answer.");
  }
  setClock(Date.parse(response.headers.get("Date")));
  if (response.ok) return text === "" ? null : parse(text);
  let detail = response.statusText;
  try {
    detail = parse(text).detail || detail;
  } catch {
    // Not from the gateway but from something in between; the status says enough.
  }
  throw new Problem(response.status, detail);
}

export const get = (path) => request("GET", path);
/** `body` is an object, or JSON text that goes out as it is. */
export const post = (path, body) => request("POST", path, body ?? {});
/** Logs in by a link's token or one's own; answers who that is. */
export async function login(token) {
  const who = await post("login", { token });
  key = who.key;
  try {
    localStorage.setItem(KEY, key);
  } catch {
    // Then it is good for this page only.
  }
  return who;
}
export const remove = (path) => request("DELETE", path);

/** A value that `parse` read as JSON text again, every digit of its numbers kept. */
export function stringify(value, indent = "") {
  const number = numberText(value);
  if (number !== undefined) return number;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}  `;
  const parts = Array.isArray(value)
    ? value.map((item) => stringify(item, inner))
    : Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${stringify(item, inner)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return parts.length === 0 ? open + close : `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${indent}${close}`;
}

/** All pages of a list, at most `most` items. */
export async function all(path, most) {
  const items = [];
  let cursor = "";
  do {
    const page = await get(path + (cursor && "&cursor=" + encodeURIComponent(cursor)));
    items.push(...page.items);
    cursor = page.next;
  } while (cursor && items.length < most);
  return items;
}

/**
 * Follows the event stream: `on.open()`, `on.event(name, object)`, `on.lost()`, and `on.refused()` when the gateway no
 * longer knows this browser. Returns a function that ends it. (An EventSource cannot send the key.)
 */
export function follow(on) {
  const end = new AbortController();
  let timer;
  const connect = async () => {
    let status = 0;
    try {
      const response = await fetch(BASE + "events", { headers: own(), credentials: "same-origin", signal: end.signal });
      status = response.status;
      if (response.ok) {
        on.open();
        await readEvents(response.body, on.event);
      }
    } catch {
      // It broke off; what there is to do is the same as at its end.
    }
    if (end.signal.aborted) return;
    on.lost();
    if (status === 401) on.refused();
    else timer = setTimeout(connect, 1000);
  };
  connect();
  return () => {
    clearTimeout(timer);
    end.abort();
  };
}

/** Reads server-sent events to their end: one `event:` and one `data:` line each, and comments, which say nothing. */
async function readEvents(body, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (text + value).split("\n\n");
    text = events.pop();
    for (const event of events) {
      const field = (name) => event.split("\n").find((line) => line.startsWith(name + ": "))?.slice(name.length + 2);
      if (field("data") !== undefined) take(field("event"), parse(field("data")));
    }
  }
}
