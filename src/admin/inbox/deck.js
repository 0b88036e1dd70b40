// The waiting calls as one list: which are shown, in which order, in which groups; deciding a whole group.

import { post } from "./api.js";
import { el, visible } from "./show.js";

const SEVERITY = { critical: 0, high: 1, normal: 2, low: 3 };
/** One request decides at most so many. */
const AT_ONCE = 50;

const by = (id) => document.getElementById(id);

export class Deck {
  /** `cards` are all there are, by id. `on.moved()` is called after anything has changed its place. */
  constructor(cards, on) {
    this.cards = cards;
    this.on = on;
    this.list = by("waiting");
    this.groups = new Map();
    for (const id of ["search", "filter-agent", "filter-upstream", "filter-group", "filter-age", "group-by"]) {
      by(id).addEventListener("input", () => this.arrange());
    }
    by("filters").addEventListener("submit", (event) => event.preventDefault());
    // Nothing changes its place while somebody points at the list or writes in it.
    this.list.addEventListener("pointerleave", () => this.late && this.arrange());
    this.list.addEventListener("focusout", () => setTimeout(() => this.late && !this.isUsed && this.arrange()));
  }

  get isUsed() {
    return this.list.matches(":hover") || this.list.contains(document.activeElement);
  }

  /** Shows a new card: at the end while the list is used, in its place otherwise; `many` are arranged afterwards. */
  add(card, many) {
    this.list.append(card.element);
    if (many) return;
    if (this.isUsed && this.list.children.length > 1) {
      this.late = true;
      this.choices();
      card.element.hidden = !this.fits(card);
    } else {
      this.arrange();
    }
  }

  /** Brings everything into its place. */
  arrange() {
    this.late = false;
    this.choices();
    const shown = [...this.cards.values()].filter((card) => {
      card.element.hidden = !this.fits(card);
      return !card.element.hidden;
    });
    shown.sort((a, b) => rank(a) - rank(b) || due(a).localeCompare(due(b)) || a.approval.id.localeCompare(b.approval.id));
    const focused = document.activeElement;
    const wanted = this.grouped(shown);
    wanted.forEach((element, at) => {
      if (this.list.children[at] !== element) this.list.insertBefore(element, this.list.children[at] ?? null);
    });
    if (focused?.isConnected && focused !== document.activeElement) focused.focus();
    const hidden = this.cards.size - shown.length;
    by("filtered").hidden = hidden === 0;
    by("filtered").textContent = `${hidden} more ${hidden === 1 ? "is" : "are"} not shown: they do not match.`;
    this.on.moved();
  }

  fits({ approval }) {
    const { call } = approval;
    const words = by("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = [call.label, call.agent, call.upstream, call.tool ?? "", call.decided_by.join(" "), approval.id].join(" ").toLowerCase();
    const is = (id, value) => by(id).value === "" || by(id).value === value;
    const age = Number(by("filter-age").value);
    return words.every((word) => text.includes(word))
      && is("filter-agent", call.agent) && is("filter-upstream", call.upstream) && is("filter-group", call.group)
      && Date.now() - Date.parse(call.created_at) >= age;
  }

  /** The choices of the filters: what there is. */
  choices() {
    const calls = [...this.cards.values()].map((card) => card.approval.call);
    for (const [id, all, key] of [["filter-agent", "Any agent", "agent"], ["filter-upstream", "Any upstream", "upstream"], ["filter-group", "Any group", "group"]]) {
      const box = by(id);
      const values = [...new Set([...calls.map((call) => call[key]), box.value].filter(Boolean))].sort();
      // One choice is none.
      box.hidden = values.length < 2;
      const known = [...box.options].slice(1).map((option) => option.value);
      if (box.options.length > 0 && JSON.stringify(known) === JSON.stringify(values)) continue;
      const chosen = box.value;
      box.replaceChildren(new Option(all, ""), ...values.map((value) => new Option(value, value)));
      box.value = chosen;
    }
    by("filters").hidden = calls.length < 2 && by("search").value === "";
  }

  /** The cards, under a heading for each group that has several. */
  grouped(cards) {
    const by_ = by("group-by").value;
    for (const [, head] of this.groups) head.remove();
    this.groups.clear();
    if (by_ === "") return cards.map((card) => card.element);
    const groups = new Map();
    for (const card of cards) {
      const key = groupKey(card.approval.call, by_);
      groups.set(key, [...(groups.get(key) ?? []), card]);
    }
    return [...groups].flatMap(([key, own]) => {
      const head = this.head(by_, key, own);
      this.groups.set(key, head);
      return [head, ...own.map((card) => card.element)];
    });
  }

  head(kind, key, cards) {
    const approve = button("approve", "approve-group", "");
    const reject = button("reject", "reject-group", "");
    const problem = el("p", "problem");
    problem.setAttribute("role", "alert");
    const name = { session: "Session", rule: "Rule", tool: "Tool" }[kind];
    const head = el("div", "group", el("h3", "", `${name} `, visible(key || "none"), ` · ${cards.length}`),
      el("div", "buttons", approve, reject), problem);
    head.refresh = () => {
      const open = cards.filter((card) => card.mayDecide).length;
      const now = Math.min(open, AT_ONCE);
      approve.textContent = `Approve these ${now}`;
      reject.textContent = open === cards.length ? `Reject these ${now}` : "Reject the rest";
      approve.hidden = reject.hidden = open < 2;
      approve.disabled = reject.disabled = this.isGuarded;
    };
    head.refresh();
    approve.addEventListener("click", () => this.decide(cards, "approve", problem));
    reject.addEventListener("click", () => this.decide(cards, "reject", problem));
    return head;
  }

  /** Decides all of a group that still wait; approves only what was looked at. */
  async decide(cards, decision, problem) {
    if (this.isGuarded) return;
    const open = cards.filter((card) => card.mayDecide).slice(0, AT_ONCE);
    if (decision === "reject" && open.some((card) => card.approval.reason_required)) {
      problem.textContent = "A rejection of some of them needs a reason of its own: reject those one by one.";
      return;
    }
    const unseen = open.filter((card) => !card.wasSeen);
    if (decision === "approve" && unseen.length > 0) {
      problem.textContent = `${unseen.length} of them were not looked at to the end: open each before you approve all.`;
      unseen[0].open();
      return;
    }
    problem.textContent = "";
    const note = decision === "reject" ? "Rejected with the others of its group." : null;
    for (const card of open) card.setBusy(true);
    try {
      const decided = await post("approvals/decide", open.map((card) => ({ id: card.approval.id, digest: card.element.dataset.digest, decision, note })));
      for (const item of decided.items) {
        const card = this.cards.get(item.id);
        if (item.approval) card?.update(item.approval);
        else if (card) card.say(item.problem?.detail ?? "It was not decided.");
      }
    } catch (failure) {
      problem.textContent = failure.message;
    } finally {
      for (const card of open) card.setBusy(false);
    }
  }

  /** Group buttons are guarded as the cards' are, and say what there is by now. */
  setGuarded(guarded) {
    this.isGuarded = guarded;
    for (const [, head] of this.groups) head.refresh();
  }

  /** The cards that can be seen, in their order on the page. */
  get visible() {
    const shown = [...this.list.querySelectorAll("[data-approval-id]")].filter((element) => !element.hidden);
    return shown.map((element) => this.cards.get(element.dataset.approvalId)).filter(Boolean);
  }
}

const rank = (card) => (card.approval.state === "waiting" ? 0 : 10) + (SEVERITY[card.approval.severity] ?? 2);
const due = (card) => card.approval.expires_at;

function groupKey(call, kind) {
  if (kind === "session") return call.session ?? "";
  if (kind === "rule") return call.decided_by.join(", ");
  return `${call.upstream}/${call.tool ?? call.method}`;
}

function button(className, action, text) {
  const made = el("button", className, text);
  made.type = "button";
  made.dataset.action = action;
  return made;
}
