// One held call: what will happen, all that is known of it, and the two buttons.

import { Edit, Remember, presets } from "./actions.js";
import { post, get } from "./api.js";
import { argumentTree, code, differenceBlock, el, facetList, setText, visible, why } from "./show.js";
import { clockTime, duration, tick } from "./time.js";
import { definition } from "./tools.js";

const OPEN_AT_FIRST = 3;
/** At the bottom of the screen the buttons may cover so much, px: what is behind them is not seen. */
const BAR = 150;
/** How much more time one click asks for, ms; the gateway bounds it. */
const MORE_TIME = 600_000;
/** Calls of a session that are shown beside one. */
const CONTEXT = 20;

export class Card {
  /**
   * `me` is who decides; `on.changed(card)` is called whenever what is shown has changed, `on.gone(card)` when the
   * gateway no longer shows the call to this person. `siblings` cards are there already.
   */
  constructor(approval, me, on, siblings) {
    this.me = me;
    this.on = on;
    this.element = document.getElementById("card").content.firstElementChild.cloneNode(true);
    this.details = this.element.querySelector("details");
    this.element.dataset.approvalId = approval.id;
    this.details.open = siblings < OPEN_AT_FIRST;
    this.details.addEventListener("toggle", () => {
      this.render();
      this.guardButtons();
    });
    // "Show all" of a long text: what was hidden is there now.
    this.details.addEventListener("click", (event) => {
      if (event.target.closest("button")) setTimeout(() => this.moved());
    });
    this.button("approve").addEventListener("click", () => this.decide("approve"));
    this.button("reject").addEventListener("click", () => this.decide("reject"));
    this.note.addEventListener("input", () => this.say(""));
    this.remember = new Remember(this.slot("remember"), this.slot("options"), approval.id);
    this.edit = new Edit(this.slot("edit"), this.element.querySelector('[data-field="arguments"]'), this.slot("edits"));
    this.slot("presets").replaceChildren(...presets(this.note));
    this.button("claim").addEventListener("click", () => this.ask("claim", { release: this.isMine }));
    this.button("extend").addEventListener("click", () => this.ask("extend", { by_ms: MORE_TIME }));
    this.button("context").addEventListener("click", () => this.context());
    this.isBusy = false;
    this.isGuarded = false;
    // Looked at is what has been on the screen to its end.
    this.watcher = new IntersectionObserver((seen) => {
      this.atEnd = seen.at(-1).isIntersecting;
      this.looked();
    }, { rootMargin: `0px 0px -${BAR}px 0px` });
    this.watcher.observe(this.slot("end"));
    this.update(approval);
  }

  /** All of it counts as looked at when its end is on the screen, with nothing that is still to come or to be shown. */
  looked() {
    if (!this.atEnd || !this.isComplete || !this.details.open || this.details.querySelector(".more")) return;
    this.element.classList.add("seen");
    this.guardButtons();
  }

  get wasSeen() {
    return this.element.classList.contains("seen");
  }

  /** Whether this person's approval would count now. */
  get mayDecide() {
    return this.approval.state === "waiting" && this.me.roles.includes("approver") && this.approval.you.may_approve;
  }

  get isSevere() {
    return ["high", "critical"].includes(this.approval.severity);
  }

  get isMine() {
    return this.approval.claimed?.by === this.me.name && Date.parse(this.approval.claimed.until) > Date.now();
  }

  focus() {
    this.element.querySelector("summary").focus();
    this.element.scrollIntoView({ block: "nearest" });
  }

  open() {
    this.details.open = true;
    this.focus();
  }

  /** One key approves only what was looked at, and nothing that is severe. */
  approveByKey() {
    if (!this.mayDecide || this.isGuarded) return;
    if (this.isSevere) return this.say("This one is severe: use the button, after you have looked at all of it.");
    if (!this.details.open || !this.wasSeen) return this.open();
    this.decide("approve");
  }

  startRejecting() {
    if (this.approval.state !== "waiting") return;
    this.open();
    this.note.focus();
  }

  startEditing() {
    if (this.slot("edit").hidden || !this.mayDecide) return;
    this.open();
    this.slot("edit").open = true;
    this.element.querySelector('[data-field="arguments"]').focus();
  }

  slot(name) {
    return this.element.querySelector(`[data-slot="${name}"]`);
  }

  button(action) {
    return this.element.querySelector(`[data-action="${action}"]`);
  }

  get note() {
    return this.element.querySelector('[data-field="note"]');
  }

  /** Takes the approval as it is now. What is on the screen is bound to its digest. */
  update(approval) {
    const before = this.approval;
    this.approval = approval;
    const { call } = approval;
    const changed = before && before.call.digest !== call.digest;
    if (!before || changed) {
      this.rendered = this.isComplete = false;
      this.element.classList.remove("seen");
      this.edit.update(call);
      this.element.dataset.digest = call.digest;
      this.element.setAttribute("aria-label", `${call.agent} asks: ${call.label}`);
      this.render();
    }
    if (changed) {
      const notice = this.slot("changed");
      notice.hidden = false;
      const own = approval.edited_from && approval.edited_from.by === this.me.name;
      notice.textContent = own
        ? "This is what it is with your changes. They bring something that you were not shown: look again, then approve."
        : "This request has changed since it was shown. Look again before you decide.";
    }
    if (before?.state === "waiting" && approval.state !== "waiting") {
      this.details.open = false;
      this.slot("changed").hidden = true;
    }
    this.element.dataset.state = approval.state;
    this.element.dataset.severity = approval.severity;
    this.renderHead();
    this.renderVotes();
    this.renderDecision();
    if (before) this.on.changed(this);
  }

  renderHead() {
    const { approval } = this;
    const { call } = approval;
    setText(this.slot("label"), call.label);
    const severity = this.slot("severity");
    severity.hidden = approval.severity === "normal";
    severity.textContent = approval.severity;
    this.slot("from").replaceChildren(el("strong", "", visible(call.agent)), " → ", visible(call.upstream));
    const standing = this.slot("standing");
    standing.hidden = approval.state !== "waiting";
    standing.textContent = approval.client.task ? "as a task" : approval.client.state === "attached" ? "agent waits" : approval.client.will_run === "now" ? "agent gone, would run" : "agent gone";
    const { claimed } = approval;
    const isClaimed = claimed && approval.state === "waiting" && Date.parse(claimed.until) > Date.now();
    this.slot("claimed").hidden = !isClaimed;
    if (isClaimed) setText(this.slot("claimed"), claimed.by === this.me.name ? "you are looking" : `${claimed.by} is looking`);
    this.button("claim").textContent = this.isMine ? "I am not looking any more" : "I am looking";
    this.button("context").hidden = !call.session;
    const countdown = this.slot("countdown");
    countdown.hidden = approval.state !== "waiting";
    if (approval.state === "waiting") countdown.dataset.expiresAt = approval.expires_at;
  }

  /** The body, once it is looked at: arguments may be long. */
  render() {
    if (this.rendered || !this.details.open) return;
    this.rendered = true;
    const { approval } = this;
    const { call } = approval;
    this.slot("flags").replaceChildren(...approval.look_at.map((sentence) => el("li", "flag", visible(sentence))));
    this.slot("facts").replaceChildren(...facts(call, approval.runs_in));
    this.slot("facets").replaceChildren(...facetList(call.facets));
    this.slot("why").replaceChildren(...why(call));
    const reveal = (pointer) => post(`approvals/${encodeURIComponent(approval.id)}/reveal`, { pointer });
    this.slot("arguments").replaceChildren(argumentTree(call.arguments, { ...call, reveal: this.mayDecide ? reveal : null }));
    this.slot("edited").replaceChildren(...edited(approval));
    const { digest } = call;
    Promise.all([this.renderTool(), this.renderDiff()]).then(() => {
      if (this.approval.call.digest !== digest) return;
      this.isComplete = true;
      this.moved();
    });
  }

  /** Something of it has another height now: buttons moved, and its end is somewhere else. */
  moved() {
    this.on.changed(this);
    const end = this.slot("end");
    this.watcher.unobserve(end);
    this.watcher.observe(end);
  }

  /** What would change in a file, for calls that write. */
  async renderDiff() {
    const slot = this.slot("diff");
    slot.replaceChildren();
    if (!this.approval.call.facets.some((facet) => facet.kind === "path" && facet.access === "write")) return;
    try {
      const { files } = await get(`approvals/${encodeURIComponent(this.approval.id)}/diff`);
      slot.replaceChildren(...files.flatMap(fileDiff));
    } catch (problem) {
      slot.replaceChildren(el("p", "problem", visible(problem.message)));
    }
  }

  /** What else its session called. */
  async context() {
    const slot = this.slot("context");
    if (slot.childElementCount > 0) return slot.replaceChildren();
    try {
      const { row } = await import("./pages.js");
      const { session, id } = this.approval.call;
      const { items } = await get(`calls?session=${encodeURIComponent(session)}&limit=${CONTEXT}`);
      const others = items.filter((call) => call.id !== id).map(row);
      slot.replaceChildren(others.length > 0 ? el("ol", "call-list", ...others) : el("p", "hint", "It has called nothing else."));
      tick(slot);
    } catch (problem) {
      slot.replaceChildren(el("p", "problem", visible(problem.message)));
    }
    this.moved();
  }

  /** Asks the gateway for something that decides nothing. */
  async ask(what, body) {
    this.say("");
    try {
      this.update(await post(`approvals/${encodeURIComponent(this.approval.id)}/${what}`, body));
    } catch (problem) {
      this.say(sentenceCase(problem.message));
    }
  }

  /** Where the tool itself is what is new: its definition, or what changed in it. */
  async renderTool() {
    const { call, flags, definition: digest } = this.approval;
    const slot = this.slot("tool");
    if (!flags.includes("new_tool")) return slot.replaceChildren();
    const note = "Approving lets this one call run. The tool itself is accepted on the page Tools, by an operator.";
    try {
      const which = { upstream: call.upstream, name: call.tool, ...(digest && { digest }) };
      const detail = await get(`tools/definition?${new URLSearchParams(which)}`);
      const gone = "This is what the call was made on. The upstream offers another definition by now, so it will not run.";
      const hints = [detail.is_offered ? [] : [el("p", "problem", gone)], el("p", "hint", note)].flat();
      slot.replaceChildren(...definition(detail), ...hints);
    } catch (problem) {
      slot.replaceChildren(el("p", "problem", visible(problem.message)));
    }
  }

  renderVotes() {
    const { votes, requirements } = this.approval;
    const items = requirements
      .filter((need) => need.quorum > 1 || need.approvers.length > 0)
      .map((need) => {
        const who = need.approvers.length > 0 ? ` by ${need.approvers.join(", ")}` : "";
        const later = need.escalate?.due ? `; from ${need.escalate.to.join(", ")} too at ${clockTime(need.escalate.due)}` : "";
        return el("li", "", visible(`${need.votes} of ${need.quorum} approvals${who}${later}`));
      });
    this.slot("votes").replaceChildren(...items, ...votes.map(voteLine));
    this.slot("told").replaceChildren(...this.approval.notified.map(toldLine));
  }

  renderDecision() {
    const { approval, me } = this;
    const isOpen = approval.state === "waiting";
    const mayDecide = me.roles.includes("approver");
    const { why_not: whyNot } = approval.you;
    this.slot("decide").hidden = this.slot("bar").hidden = !isOpen;
    const what = mayDecide && !whyNot ? effect(approval, me) : [mayDecide ? visible(`${sentenceCase(whyNot)}.`) : LOOK_ONLY];
    this.slot("effect").replaceChildren(...what);
    this.button("approve").hidden = Boolean(whyNot);
    this.remember.update(mayDecide && !whyNot ? approval.grant_options : []);
    this.slot("edit").hidden = this.slot("edit").hidden || !isOpen || !mayDecide || Boolean(whyNot);
    for (const action of ["claim", "extend"]) this.button(action).hidden = !isOpen || !mayDecide;
    for (const element of [this.slot("presets"), this.note.parentElement, this.slot("problem"), this.button("approve").parentElement]) {
      element.hidden = !mayDecide;
    }
    this.slot("note-label").textContent = approval.reason_required
      ? "Reason (needed to reject; the agent is told)"
      : "Note or reason (the agent is told if you reject)";
    const settled = this.slot("settled");
    settled.hidden = isOpen;
    if (!isOpen) settled.replaceChildren(...outcome(approval));
  }

  async decide(action) {
    if (this.isBusy || this.approval.state !== "waiting") return;
    const note = this.note.value.trim() || null;
    if (action === "reject" && this.approval.reason_required && note === null) {
      this.say("Say why: a rejection of this call needs a reason.");
      this.note.focus();
      return;
    }
    const { id } = this.approval;
    const { digest } = this.element.dataset;
    const changed = action === "approve" ? this.edit.changed() : null;
    if (changed !== null && this.remember.chosen()) {
      return this.say("What you changed cannot be remembered, since the agent asks again with its own arguments: close one of the two.");
    }
    let body = { note };
    if (changed !== null) body = `{"digest":${JSON.stringify(digest)},"note":${JSON.stringify(note)},"arguments":${changed}}`;
    else if (action === "approve") body = { digest, note, remember: this.remember.chosen() };
    this.say("");
    this.setBusy(true);
    try {
      this.update(await post(`approvals/${encodeURIComponent(id)}/${action}`, body));
    } catch (problem) {
      this.say(problem.status === 0
        ? "The gateway does not answer. It is not known whether your decision arrived; wait until the page is live again."
        : sentenceCase(problem.message));
      if ([404, 409, 410, 412].includes(problem.status)) await this.refresh();
    } finally {
      this.setBusy(false);
    }
  }

  /** Fetches the approval again; whatever it is now is shown. */
  async refresh() {
    try {
      this.update(await get(`approvals/${encodeURIComponent(this.approval.id)}`));
    } catch (problem) {
      if (problem.status === 404) this.on.gone(this);
    }
  }

  say(text) {
    this.slot("problem").textContent = text;
  }

  setBusy(busy) {
    this.isBusy = busy;
    this.element.classList.toggle("busy", busy);
    // What came in between may have moved it: the guard ends by its own time.
    this.guardButtons();
  }

  /** While guarded, a click does nothing: it was meant for what stood here a moment ago. */
  setGuarded(guarded) {
    this.isGuarded = guarded;
    // Those of a closed card are not there; it looks when it opens.
    if (this.details.open) this.guardButtons();
  }

  guardButtons() {
    const waits = this.isGuarded || this.isBusy;
    const unseen = this.isSevere && !this.wasSeen;
    this.button("reject").disabled = waits;
    this.button("approve").disabled = waits || unseen;
    this.button("approve").title = unseen ? "Look at all of it first, to the end of its arguments." : "";
  }

  /** Whether there is nothing left to wait for. */
  get isOver() {
    return this.approval.call.outcome !== null;
  }
}

const LOOK_ONLY = "You can look at this; deciding needs the role approver.";

function facts(call, place) {
  const agent = [visible(call.agent), call.owner ? el("span", "hint", " of ", visible(call.owner)) : ""];
  const kind = [call.source === "background" ? "background job" : "", call.depth === "sub" ? "started by another agent" : ""];
  const rows = [
    [call.from_upstream ? "Asks agent" : "Agent", ...agent],
    ["Group", visible(call.group), el("span", "hint", kind.filter(Boolean).map((word) => `, ${word}`).join(""))],
    ["Upstream", code(call.upstream), place ? el("span", "hint", " in ", visible(place)) : ""],
    call.tool === null ? ["Method", code(call.method)] : ["Tool", code(call.tool)],
  ];
  return rows.map(([name, ...value]) => el("div", "fact", el("dt", "", name), el("dd", "", ...value)));
}

/** What approving does, in one sentence. */
function effect({ call, client, requirements }, me) {
  if (requirements.some((need) => need.votes + 1 < need.quorum)) return [el("strong", "", "Counts as one approval;"), " more people are needed before it runs."];
  if (call.from_upstream) return [el("strong", "", "Asks the agent's side"), " when approved: the upstream's request goes to the client and its model or user, and the upstream gets their answer."];
  const grace = duration(me.hold_grace_ms);
  if (client.task) return [el("strong", "", "Runs at once"), " when approved: the agent has a task for it and asks for its end later."];
  if (client.state === "attached") return [el("strong", "", "Runs at once"), " when approved: the agent is waiting for it."];
  if (client.will_run === "now") return [el("strong", "", "Runs at once"), " when approved, although the agent is not connected now."];
  return [el("strong", "", `Runs when the agent comes back`), ` with the same call within ${grace} of your decision. After that it is cancelled.`];
}

/** What an approver changed: what the agent sent. */
function edited({ edited_from: from }) {
  if (!from) return [];
  const block = el("details", "", el("summary", "hint", "What the agent sent"), el("div", "arguments", argumentTree(from.arguments, { ...from, redacted: [...new Set(from.hidden.map((one) => one.pointer))] })));
  return [el("p", "banner warn", visible(`${from.by} changed the arguments at ${clockTime(from.at)}.`)), block];
}

const FILES = {
  changed: "would change", new: "would be made", same: "would stay as it is", binary: "would be written; it is no text",
  too_large: "would be written; it is too large to be shown", unclear: "would be written; what becomes of it cannot be told",
};

function fileDiff(file) {
  const moved = file.moved_on ? el("p", "problem", "The file has changed since the call was held: an approval ends as stale.") : null;
  const said = [file.truncated ? "There is more than is shown." : "", file.hidden_more > 0 ? `Nothing is told of ${file.hidden_more} secrets.` : ""];
  const more = said.some(Boolean) ? el("p", "hint", said.filter(Boolean).join(" ")) : null;
  const lines = file.lines.length > 0 ? differenceBlock(file.lines, file.hidden) : null;
  return [el("h4", "", "Changes"), el("p", "", code(file.path), ` ${FILES[file.state] ?? file.state}`), moved, lines, more].filter(Boolean);
}

function toldLine({ channel, state, at, detail }) {
  const told = { delivered: "told", updated: "told", closed: "told", pending: "telling", failed: "could not tell" }[state] ?? state;
  return el("li", "hint", visible(`${told} ${channel}${at ? ` at ${clockTime(at)}` : ""}${detail ? `: ${detail}` : ""}`));
}

function voteLine(vote) {
  const verb = vote.decision === "approve" ? "approved" : "rejected";
  return el("li", `vote ${vote.decision}`, el("strong", "", visible(vote.by)), ` ${verb} (${vote.channel})`,
    vote.note ? el("span", "", ": “", visible(vote.note), "”") : null);
}

/** How it stands or ended, in one line. */
function outcome({ state, call, client, votes }) {
  const by = votes.length > 0 ? ` by ${votes.at(-1).by}` : "";
  const took = call.ran_ms === null ? "" : ` in ${duration(call.ran_ms)}`;
  switch (call.state) {
    case "awaiting_approval":
      return [el("strong", "", "Approved"),
        visible(`${by}; ${client.state === "attached" ? "starting now" : "waits for the agent to come back"}.`)];
    case "running":
      return [el("strong", "", "Approved"), visible(`${by}; running now.`)];
    case "completed":
      return [el("strong", "ok", "Completed"), visible(`${took}${call.tool_error ? "; the tool reported an error" : ""}.`)];
    case "failed":
      return [el("strong", "bad", "Failed"), visible(`${call.may_have_run ? "; it may have run" : ""}. ${call.detail ?? ""}`)];
    case "cancelled":
      return [el("strong", "", "Cancelled"), visible(call.detail ? `: ${call.detail}` : "; nothing ran.")];
    case "rejected": {
      const reasons = { approver: by, expired: ": nobody decided in time", stale: ": what it would do, or what policy says of it, changed while it waited" };
      return [el("strong", "bad", "Rejected"), visible(`${reasons[call.reason] ?? `: ${call.reason}`}. Nothing ran.`)];
    }
    default:
      return [visible(state)];
  }
}

const sentenceCase = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
