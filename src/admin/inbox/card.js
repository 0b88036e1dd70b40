// One held call: what will happen, all that is known of it, and the two buttons.

import { post, get } from "./api.js";
import { argumentTree, code, el, facetList, setText, visible, why } from "./show.js";
import { clockTime, duration } from "./time.js";
import { definition } from "./tools.js";

const OPEN_AT_FIRST = 3;

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
    this.details.addEventListener("toggle", () => this.render());
    this.button("approve").addEventListener("click", () => this.decide("approve"));
    this.button("reject").addEventListener("click", () => this.decide("reject"));
    this.note.addEventListener("input", () => this.say(""));
    this.isBusy = false;
    this.update(approval);
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
      this.rendered = false;
      this.element.dataset.digest = call.digest;
      this.element.setAttribute("aria-label", `${call.agent} asks: ${call.label}`);
      this.render();
    }
    if (changed) {
      const notice = this.slot("changed");
      notice.hidden = false;
      notice.textContent = "This request has changed since it was shown. Look again before you decide.";
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
    this.slot("arguments").replaceChildren(argumentTree(call.arguments, call.redacted));
    this.renderTool();
  }

  /** Where the tool itself is what is new: its definition, or what changed in it. */
  async renderTool() {
    const { call, flags, definition: digest } = this.approval;
    const slot = this.slot("tool");
    if (!flags.includes("new_tool")) return slot.replaceChildren();
    const note = "Approving lets this one call run. The tool itself is accepted below, under tools, by an operator.";
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
  }

  renderDecision() {
    const { approval, me } = this;
    const isOpen = approval.state === "waiting";
    const mayDecide = me.roles.includes("approver");
    const { why_not: whyNot } = approval.you;
    this.slot("decide").hidden = !isOpen;
    const what = mayDecide && !whyNot ? effect(approval.client, me) : [mayDecide ? visible(`${sentenceCase(whyNot)}.`) : LOOK_ONLY];
    this.slot("effect").replaceChildren(...what);
    this.button("approve").hidden = Boolean(whyNot);
    for (const element of [this.note.parentElement, this.slot("problem"), this.button("approve").parentElement]) {
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
    const body = action === "approve" ? { digest: this.element.dataset.digest, note } : { note };
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
    this.setGuarded(busy);
  }

  /** While guarded, a click does nothing: it was meant for what stood here a moment ago. */
  setGuarded(guarded) {
    for (const action of ["approve", "reject"]) this.button(action).disabled = guarded || this.isBusy;
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
    ["Agent", ...agent],
    ["Group", visible(call.group), el("span", "hint", kind.filter(Boolean).map((word) => `, ${word}`).join(""))],
    ["Upstream", code(call.upstream), place ? el("span", "hint", " in ", visible(place)) : ""],
    call.tool === null ? ["Method", code(call.method)] : ["Tool", code(call.tool)],
  ];
  return rows.map(([name, ...value]) => el("div", "fact", el("dt", "", name), el("dd", "", ...value)));
}

/** What approving does, in one sentence. */
function effect(client, me) {
  const grace = duration(me.hold_grace_ms);
  if (client.state === "attached") return [el("strong", "", "Runs at once"), " when approved: the agent is waiting for it."];
  if (client.will_run === "now") return [el("strong", "", "Runs at once"), " when approved, although the agent is not connected now."];
  return [el("strong", "", `Runs when the agent comes back`), ` with the same call within ${grace} of your decision. After that it is cancelled.`];
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
