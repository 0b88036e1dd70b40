// What upstreams offer: tools that wait to be accepted, with what changed in them, and all the others.

import { all, get, post } from "./api.js";
import { code, differenceBlock, el, setText, visible } from "./show.js";
import { clockTime } from "./time.js";

/** A click counts only if its row has stood still for this long, ms. */
const GUARD = 400;

const MOST_TOOLS = 2000;

const by = (id) => document.getElementById(id);

export class Tools {
  constructor(me) {
    this.me = me;
    this.rows = new Map();
    for (const id of ["tools-open", "tools-accepted"]) by(id).replaceChildren();
    by("tools-problem").textContent = "";
    by("tools-refresh").hidden = !this.isOperator;
    by("tools-refresh").onclick = () => this.refresh();
    by("tools-search").oninput = () => this.filter();
    by("tools-filters").onsubmit = (event) => event.preventDefault();
    this.count();
  }

  /** All there are, as they are now: what policy says of them changes without them. */
  async load() {
    for (const tool of await all("tools?limit=200", MOST_TOOLS)) this.update(tool, true);
    this.count();
  }

  /** Shows those that have all the words that are searched for. */
  filter() {
    const words = by("tools-search").value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const { element, tool } of this.rows.values()) {
      const verdicts = Object.entries(tool.verdicts).map(([group, verdict]) => `${group}:${verdict}`);
      const text = [tool.upstream, tool.name, tool.state, ...verdicts].join(" ").toLowerCase();
      element.hidden = !words.every((word) => text.includes(word));
    }
  }

  get isOperator() {
    return this.me.roles.includes("operator");
  }

  /** Asks all upstreams for their tools; what they list comes with the events. */
  async refresh() {
    by("tools-refresh").disabled = true;
    by("tools-problem").textContent = "";
    try {
      const asked = await post("tools/refresh");
      const broken = asked.items.filter((item) => item.error);
      const lines = broken.map((item) => `The tools of ${item.upstream} cannot be listed: ${item.error}`);
      by("tools-problem").replaceChildren(visible(lines.join("\n"), { lines: true }));
    } catch (problem) {
      by("tools-problem").replaceChildren(visible(problem.message));
    } finally {
      by("tools-refresh").disabled = false;
    }
  }

  /** Shows a tool, or what has become of it; `many` are counted afterwards. */
  update(tool, many = false) {
    const key = `${tool.upstream}/${tool.name}`;
    let row = this.rows.get(key);
    if (!row) {
      row = { element: by("tool").content.firstElementChild.cloneNode(true) };
      row.element.dataset.tool = key;
      row.element.querySelector("details").addEventListener("toggle", () => this.open(row));
      this.rows.set(key, row);
    }
    const changed = row.tool && (row.tool.definition_digest !== tool.definition_digest || row.tool.state !== tool.state);
    row.tool = tool;
    row.element.dataset.state = tool.state;
    row.element.dataset.digest = tool.definition_digest;
    const slot = (name) => row.element.querySelector(`[data-slot="${name}"]`);
    slot("state").textContent = tool.state;
    slot("state").className = `badge state ${tool.state === "accepted" ? "ok" : "warn"}`;
    setText(slot("label"), tool.name);
    setText(slot("from"), tool.upstream);
    slot("verdicts").replaceChildren(...Object.entries(tool.verdicts).map(groupVerdict));
    slot("flags").replaceChildren(...tool.flags.map(flag));
    this.place(row);
    if (changed || !row.element.querySelector("details").open) row.shown = null;
    this.open(row);
    if (!many) this.count();
  }

  /** In its list, by upstream and name; one that moves to the other is folded up. */
  place(row) {
    const list = by(row.tool.state === "accepted" ? "tools-accepted" : "tools-open");
    if (row.element.parentElement === list) return;
    row.element.querySelector("details").open = false;
    const later = [...list.children].find((other) => other.dataset.tool > row.element.dataset.tool);
    list.insertBefore(row.element, later ?? null);
  }

  count() {
    const rows = [...this.rows.values()];
    const open = rows.filter((row) => row.tool.state !== "accepted").length;
    for (const id of ["tools-count", "nav-tools"]) by(id).textContent = String(open);
    by("tools-count").classList.toggle("some", open > 0);
    by("nav-tools").hidden = by("tools-wait").hidden = open === 0;
    by("tools-wait").firstElementChild.textContent = open === 1 ? "1 tool waits to be accepted" : `${open} tools wait to be accepted`;
    by("tools-none").hidden = open > 0;
    by("tools-rest").textContent = String(rows.length - open);
    this.filter();
  }

  /** The body, once it is looked at. */
  async open(row, problem = "") {
    if (!row.element.querySelector("details").open || row.shown) return;
    row.shown = true;
    const body = row.element.querySelector('[data-slot="body"]');
    try {
      const { upstream, name } = row.tool;
      const detail = await get(`tools/definition?${new URLSearchParams({ upstream, name })}`);
      body.replaceChildren(...facts(detail), ...definition(detail), ...this.acceptButton(row, detail, problem));
    } catch (problem) {
      row.shown = null;
      body.replaceChildren(el("p", "problem", visible(problem.message)));
    }
  }

  /** What is sent is the digest of what is on the screen. */
  acceptButton(row, detail, refused) {
    if (detail.state === "accepted") return [];
    if (!this.isOperator) return [el("p", "hint", "Accepting it needs the role operator.")];
    const problem = el("p", "problem", refused);
    const button = el("button", "approve", "Accept this definition");
    button.type = "button";
    button.dataset.action = "accept";
    button.disabled = true;
    setTimeout(() => (button.disabled = false), GUARD);
    button.addEventListener("click", async () => {
      button.disabled = true;
      const { upstream, name, definition_digest: digest } = detail;
      try {
        this.update(await post("tools/accept", { upstream, name, digest }));
      } catch (failure) {
        if (failure.status === 412) {
          // Not what was on the screen: what it is now comes in its place.
          row.shown = null;
          return this.open(row, failure.message);
        }
        problem.textContent = failure.message;
        button.disabled = false;
      }
    });
    return [problem, button];
  }
}

const FLAGS = {
  invisible: "holds characters that nobody sees",
  bidi: "holds characters that turn the direction of text",
  instructions: "speaks to the model about its instructions or its user",
  unreadable: "cannot be read, and is left out of every list",
};

/** What policy says of the calls of a tool in one group; "depends" on what they are sent with. */
function groupVerdict([group, verdict]) {
  const item = el("li", "", el("span", "", visible(group)), " ", el("span", `badge ${verdict === "depends" ? "plain" : verdict}`, verdict));
  item.dataset.group = group;
  item.dataset.verdict = verdict;
  return item;
}

const flag = (word) => el("li", "flag", FLAGS[word] ?? visible(word));

function facts(detail) {
  const rows = [
    ["First seen", clockTime(detail.first_seen)],
    detail.accepted ? ["Accepted", visible(`by ${detail.accepted.by}, ${clockTime(detail.accepted.at)}`)] : null,
    ["Digest", code(detail.definition_digest)],
  ];
  return [el("dl", "facts", ...rows.filter(Boolean).map(([name, value]) =>
    el("div", "fact", el("dt", "", name), el("dd", "", value))))];
}

/** What changed in a definition since it was accepted; all of it, where nothing was. */
export function definition(detail) {
  if (detail.difference.length > 0) return [el("h4", "", "Changed since it was accepted"), differenceBlock(detail.difference)];
  const text = JSON.stringify(detail.definition, null, 2);
  return [el("h4", "", "Definition"), differenceBlock(text.split("\n").map((line) => `  ${line}`))];
}
