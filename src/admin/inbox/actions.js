// What an approver may do with a held call besides yes and no: remember it, change it, put off its end.

import { parse, stringify } from "./api.js";
import { differenceBlock, el, visible } from "./show.js";
import { duration } from "./time.js";

/** Why people reject; the words fill the note and can be changed. */
const REASONS = ["Not needed for this task.", "Wrong file or place.", "Too risky; find a safer way.", "Ask me first what I want."];

/** Buttons that write a reason into the note. */
export function presets(note) {
  return REASONS.map((reason) => {
    const button = el("button", "quiet", reason);
    button.type = "button";
    button.addEventListener("click", () => {
      note.value = reason;
      note.focus();
    });
    return button;
  });
}

/** The choices of "approve and remember"; `chosen()` is what the API takes, or null. */
export class Remember {
  constructor(slot, fieldset, id) {
    this.slot = slot;
    this.fieldset = fieldset;
    this.name = `remember-${id}`;
    this.options = [];
    slot.addEventListener("toggle", () => slot.open || this.clear());
  }

  update(options) {
    this.slot.hidden = options.length === 0;
    if (JSON.stringify(options) === JSON.stringify(this.options)) return;
    this.options = options;
    this.slot.open = false;
    const choices = options.map((option, at) => {
      const input = el("input");
      Object.assign(input, { type: "radio", name: this.name, value: String(at) });
      input.addEventListener("change", () => this.choose(option));
      return el("label", "option", input, el("span", "", visible(option.sentence)));
    });
    this.bounds = el("div", "bounds");
    this.fieldset.replaceChildren(this.fieldset.querySelector("legend"), ...choices, this.bounds);
  }

  choose(option) {
    const select = (label, values) => {
      const box = el("select");
      box.setAttribute("aria-label", label || "whose calls");
      box.append(...values.map(([value, text]) => new Option(text, value)));
      return [el("label", "", label, " ", box), box];
    };
    const times = [60_000, 300_000, option.max_ttl_ms].filter((ms, at, all) => ms <= option.max_ttl_ms && all.indexOf(ms) === at);
    const [time, ttl] = select("for at most", times.map((ms) => [ms, duration(ms)]));
    ttl.value = String(option.ttl_ms);
    const [calls, uses] = select("and at most", [1, 3, option.uses, 50].filter((n, at, all) => all.indexOf(n) === at).map((n) => [n, `${n} calls`]));
    uses.value = String(option.uses);
    const words = { session: "in this session only", agent: "in all sessions of this agent" };
    const [whose, bound] = select("", option.bound.map((word) => [word, words[word]]));
    this.fields = { option, ttl, uses, bound };
    this.bounds.replaceChildren(time, calls, whose);
  }

  clear() {
    for (const input of this.fieldset.querySelectorAll("input")) input.checked = false;
    this.bounds?.replaceChildren();
    this.fields = null;
  }

  chosen() {
    if (!this.slot.open || !this.fields) return null;
    const { option, ttl, uses, bound } = this.fields;
    const { scope, path, command } = option;
    return { scope, path, command, ttl_ms: Number(ttl.value), uses: Number(uses.value), bound: bound.value };
  }
}

/** The arguments as text that can be changed; `changed()` is the new text, or null where nothing was changed. */
export class Edit {
  constructor(slot, field, edits) {
    Object.assign(this, { slot, field, edits });
    field.addEventListener("input", () => this.compare());
  }

  update(call) {
    const own = ownArguments(call.arguments);
    this.slot.hidden = own === null || call.method !== "tools/call";
    const text = stringify(own ?? {});
    if (text === this.before) return;
    this.before = text;
    this.field.value = text;
    this.slot.open = false;
    this.edits.replaceChildren();
  }

  compare() {
    if (this.changed() === null) return this.edits.replaceChildren();
    try {
      parse(this.field.value);
    } catch {
      return this.edits.replaceChildren(el("p", "problem", "This is no JSON yet."));
    }
    const [old, now] = [this.before.split("\n"), this.field.value.split("\n")];
    let [head, tail] = [0, 0];
    while (head < Math.min(old.length, now.length) && old[head] === now[head]) head += 1;
    while (tail < Math.min(old.length, now.length) - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
    const gone = old.slice(head, old.length - tail).map((line) => `- ${line}`);
    const come = now.slice(head, now.length - tail).map((line) => `+ ${line}`);
    this.edits.replaceChildren(differenceBlock([...gone, ...come]));
  }

  changed() {
    return this.slot.open && this.field.value.trim() !== this.before.trim() ? this.field.value : null;
  }
}

// The arguments under their own names; what a request carries beside them cannot be changed here.
function ownArguments(shown) {
  if (shown === null || typeof shown !== "object" || Array.isArray(shown)) return null;
  const own = Object.entries(shown).filter(([name]) => !/^(params|request)\./.test(name));
  return Object.fromEntries(own.map(([name, value]) => [name.replace(/^arguments\./, ""), value]));
}
