// What agents sent, made into text that shows everything and does nothing. Only textContent is ever set.

import { numberText } from "./api.js";

// Control, format, bidi and other invisible characters, spaces that are not the space, and halves of characters.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;
const SHORT = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

const LONG_TEXT = 20_000;
const LONG_LIST = 200;
const LONG_LINE = 400;

/** An element with a class, attributes and children (strings become text). */
export function el(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/**
 * The text with every character that a person cannot see written out as its code point, set apart from text that merely
 * looks so. With `lines`, line breaks and tabs stay what they are.
 */
export function visible(text, { lines = false } = {}) {
  const shown = document.createDocumentFragment();
  let from = 0;
  for (const match of text.matchAll(UNSEEN)) {
    const char = match[0];
    if (lines && (char === "\n" || char === "\t")) continue;
    const code = char.codePointAt(0).toString(16);
    const escape = el("span", "unseen-char", SHORT[char] ?? `\\u{${code}}`);
    escape.title = `invisible character U+${code.toUpperCase().padStart(4, "0")}`;
    shown.append(text.slice(from, match.index), escape);
    from = match.index + char.length;
  }
  shown.append(text.slice(from));
  return shown;
}

/** Text in the page's monospace face. */
export const code = (text, className = "") => el("code", className, visible(text));

/** Sets an element's only content to text from outside. */
export function setText(element, text) {
  element.replaceChildren(visible(text));
}

/**
 * Arguments as a tree; `redacted` are the JSON pointers of what the gateway hid, `hidden` tells what each secret is. Where
 * `reveal` is given, it fetches what stands at a pointer.
 */
export function argumentTree(value, { redacted = [], hidden = [], hidden_more: more = 0, reveal = null } = {}) {
  if (isEmpty(value)) return el("p", "hint", "None.");
  const secrets = new Map(redacted.map((pointer) => [pointer, hidden.filter((one) => one.pointer === pointer)]));
  const tree = node(value, "", secrets, reveal);
  if (redacted.length === 0) return tree;
  const untold = more > 0 ? ` Nothing is told of ${more} of them.` : "";
  return el("div", "", tree, el("p", "hint", `What looked like a secret is hidden here; the call itself is unchanged.${untold}`));
}

/** What stands for a secret in a text. The same text that was sent as it is stays text: only `hidden` tells which it is. */
const MARK = "[redacted]";

/** A text with what is known of each secret in its place: its length, its ends if it is long, and a short hash. */
export function withSecrets(text, hidden, { from = 0, ...how } = {}) {
  if (hidden.length === 0) return visible(text, how);
  const shown = document.createDocumentFragment();
  text.split(MARK).forEach((part, at) => {
    const secret = at > 0 && hidden.find((one) => one.mark === from + at - 1);
    if (at > 0) shown.append(secret ? secretBadge(secret) : visible(MARK));
    shown.append(visible(part, how));
  });
  return shown;
}

function secretBadge({ length, starts, ends, hash }) {
  const known = starts === null ? "" : `, ${starts}…${ends}`;
  const badge = el("span", "redacted", "secret: ", visible(`${length} ${length === 1 ? "character" : "characters"}${known}`), el("code", "", ` #${hash}`));
  badge.title = "The same secret of this agent has the same #hash everywhere.";
  return badge;
}

const isEmpty = (value) =>
  value === null || value === undefined || (typeof value === "object" && Object.keys(value).length === 0);

function node(value, pointer, redacted, reveal) {
  // Only a part of a text may be hidden: what is left is shown all the same.
  if (redacted.has(pointer)) {
    const hidden = redacted.get(pointer);
    const shown = el("span", "", typeof value === "string" ? textNode(value, hidden) : node(value, pointer, new Map()));
    const untold = hidden.length === 0 ? el("span", "redacted", "secret hidden") : null;
    return el("span", "", untold, " ", shown, reveal ? revealer(pointer, shown, reveal) : null);
  }
  const number = numberText(value);
  if (number !== undefined) return el("span", "value number", number);
  if (typeof value === "string") return textNode(value);
  if (value === null || typeof value === "boolean") return el("span", "value word", String(value));
  const isArray = Array.isArray(value);
  const entries = Object.entries(value);
  if (entries.length === 0) return el("span", "value", isArray ? "[ ]" : "{ }");
  const list = el("ul", "tree");
  const add = (from, to) => {
    for (const [key, child] of entries.slice(from, to)) {
      const place = `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      const name = isArray ? el("span", "index", key) : el("span", "key", visible(key));
      list.append(el("li", "", name, node(child, place, redacted, reveal)));
    }
  };
  add(0, LONG_LIST);
  if (entries.length > LONG_LIST) {
    list.append(el("li", "", more(`${entries.length - LONG_LIST} more entries are not shown`, (item) => {
      item.parentElement.remove();
      add(LONG_LIST, entries.length);
    })));
  }
  return list;
}

// Seeing a secret is an act of its own: it says what it does before it does it.
function revealer(pointer, shown, reveal) {
  const button = el("button", "quiet", "Reveal (this is recorded)");
  button.type = "button";
  button.dataset.action = "reveal";
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const { value } = await reveal(pointer);
      shown.replaceChildren(node(value, "", new Map()));
      button.remove();
    } catch (problem) {
      button.textContent = problem.message;
    }
  });
  return button;
}

function textNode(text, hidden = []) {
  const breaks = text.split("\n").length - 1;
  if (breaks === 0 && text.length <= 160) {
    const shown = withSecrets(text, hidden);
    return el("span", "value text", ...(text === MARK && hidden.length > 0 ? [shown] : ["“", shown, "”"]));
  }
  // No mark is cut in two.
  const whole = text.lastIndexOf(MARK, LONG_TEXT);
  const cut = whole >= 0 && whole + MARK.length > LONG_TEXT ? whole : LONG_TEXT;
  const block = el("pre", "block", withSecrets(text.slice(0, cut), hidden, { lines: true }));
  block.tabIndex = 0;
  const lines = breaks + (text.endsWith("\n") ? 0 : 1);
  const size = `${lines} ${lines === 1 ? "line" : "lines"}, ${[...text].length} characters`;
  const shown = el("div", "long", el("span", "size", size), block);
  if (text.length > cut) {
    const from = text.slice(0, cut).split(MARK).length - 1;
    shown.append(more(`${text.length - cut} more characters are not shown`, (item) => {
      block.append(withSecrets(text.slice(cut), hidden, { from, lines: true }));
      item.remove();
    }));
  }
  return shown;
}

function more(sentence, reveal) {
  const button = el("button", "quiet", "Show all");
  button.type = "button";
  const item = el("p", "more", el("strong", "", sentence), " ", button);
  button.addEventListener("click", () => reveal(item));
  return item;
}

/** One line for each thing a call would touch. */
export function facetList(facets) {
  if (facets.length === 0) return [el("li", "hint", "Nothing that the gateway knows of.")];
  return [...facets].sort((a, b) => rank(a) - rank(b)).map((facet) => {
    const item = el("li", `facet ${facet.kind}`, facetHead(facet));
    for (const floor of facet.floors) {
      item.append(el("p", "floor", visible(floor.detail || floor.why.replaceAll("_", " "))));
    }
    if (facet.matches.length > 0) item.append(el("p", "matches", ...facet.matches.map(ruleMatch)));
    return item;
  });
}

/** What changes something or leaves the machine stands first: it must not hide below what only looks. */
function rank(facet) {
  if (facet.verdict !== "allow" && facet.floors.length > 0) return 0;
  if (facet.kind === "path") return { delete: 1, write: 2, read: 6 }[facet.access] ?? 3;
  return { url: 3, address: 3, sql: 3, method: 4, command: 5 }[facet.kind] ?? 7;
}

// A command with nothing left out: rules look at `words` only, a person must see all of it.
function commandLine({ words, rest = [], unread, dynamic = { words: [], rest: [] } }) {
  if (unread) {
    return words[0] ?? "";
  }
  const quoted = (known) => (word, at) =>
    known.includes(at) || /^[\p{L}\p{N}_@%+=:,./~-]+$/u.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
  const judged = words.map(quoted(dynamic.words));
  return (rest.length === 0 ? judged : [...judged.slice(0, 1), ...rest.map(quoted(dynamic.rest))]).join(" ");
}

function facetHead(facet) {
  switch (facet.kind) {
    case "path": {
      const access = facet.access ?? "any";
      const head = el("div", "facet-head", el("span", `badge access ${access}`, facet.access ?? "unknown access"),
        code(facet.lexical, "path"));
      const isElsewhere = facet.physical && facet.physical !== facet.lexical;
      return el("div", "", head,
        isElsewhere ? el("p", "resolves", "resolves to ", code(facet.physical, "path")) : null,
        facet.command ? el("p", "hint", "named by ", code(facet.command)) : null);
    }
    case "command":
      return el("div", "facet-head", el("span", "badge access", "command"), longCode(commandLine(facet)));
    case "url":
      return el("div", "facet-head", el("span", "badge access", "url"), code(facet.url));
    case "method":
      return el("div", "facet-head", el("span", "badge access", "method"), code(facet.method));
    case "bare":
      return el("div", "facet-head", el("span", "badge access", "tool"), "the call itself");
    default:
      return el("div", "facet-head", el("span", "badge access", visible(facet.kind)), code(JSON.stringify(facet)));
  }
}

// The ends of a long text, and all of it on demand.
function longCode(text) {
  if (text.length <= LONG_LINE) return code(text);
  const ends = [text.slice(0, LONG_LINE * 0.6), text.slice(-LONG_LINE * 0.4)];
  const line = el("div", "", code(ends[0]), el("strong", "", ` … ${text.length - LONG_LINE} more characters … `), code(ends[1]));
  line.append(more("", (item) => {
    line.replaceChildren(code(text));
    item.remove();
  }));
  return line;
}

function ruleMatch(match) {
  const place = match.file ? ` (${match.file}${match.line ? `:${match.line}` : ""})` : "";
  return el("span", "rule", el("span", `badge ${match.verdict}`, match.verdict), " ", visible(match.rule + place));
}

/** The sentences behind a verdict, and the names that gave it. */
export function why(call) {
  const lines = call.reasons.map((reason) => el("p", "reason", visible(reason)));
  if (lines.length === 0) lines.push(...sentences(call).map((sentence) => el("p", "reason", sentence)));
  const names = call.decided_by.map((name) => code(name, "name"));
  if (names.length > 0) lines.push(el("p", "decided-by", "Decided by ", ...names));
  return lines;
}

// Where no rule gives a reason: what makes it wait, the special before the usual.
function sentences({ decided_by: names, group, facets }) {
  const floors = new Set(facets.flatMap((facet) => facet.floors).map((floor) => floor.detail).filter(Boolean));
  const said = [];
  if (names.includes("floor:new_tool")) said.push("No operator has accepted this tool as it is defined now.");
  else if (names.some((name) => name.startsWith("floor:"))) said.push(visible([...floors].map((text) => `${text}.`).join(" ") || "It needs a person, whatever the rules allow."));
  if (names.some((name) => name.startsWith("otherwise:"))) said.push(visible(`No rule of the group “${group}” covers this, so it asks.`));
  return said.length > 0 ? said : ["A rule asks for a decision; it gives no reason."];
}

/** Lines of a difference: `- ` gone, `+ ` new, two blanks for neither; `hidden` tells of the secrets in them. */
export function differenceBlock(lines, hidden = []) {
  const kinds = { "-": "gone", "+": "come" };
  const shown = lines.map((line, at) => {
    const secrets = hidden.filter((one) => one.pointer === `/lines/${at}`);
    return el("span", kinds[line[0]] ?? "", withSecrets(line, secrets), "\n");
  });
  const block = el("pre", "block difference", ...shown);
  block.tabIndex = 0;
  return block;
}
