// The list of recent calls, newest first, with how they ended.

import { post } from "./api.js";
import { argumentTree, code, el, facetList, setText, visible, why } from "./show.js";
import { clockTime, duration, tick } from "./time.js";

const MOST = 100;

export class Recent {
  constructor(me) {
    this.me = me;
    this.list = document.getElementById("recent");
    this.rows = new Map();
  }

  /** Shows a call, or what has become of it. Calls that wait for a decision have their cards. */
  update(call) {
    if (call.state === "awaiting_approval" || call.state === "pending") return;
    let row = this.rows.get(call.id);
    if (!row) {
      row = this.insert(call);
    }
    row.call = call;
    row.element.dataset.state = call.state;
    const slot = (name) => row.element.querySelector(`[data-slot="${name}"]`);
    const [word, kind] = standing(call);
    slot("state").textContent = word;
    slot("state").className = `badge state ${kind}`;
    slot("ago").dataset.at = call.ended_at ?? call.created_at;
    slot("ago").dateTime = call.ended_at ?? call.created_at;
    setText(slot("label"), call.label);
    setText(slot("from"), `${call.agent} → ${call.upstream}`);
    if (row.element.querySelector("details").open) this.renderBody(row);
    tick(row.element);
    document.getElementById("recent-empty").hidden = true;
  }

  insert(call) {
    const element = document.getElementById("call").content.firstElementChild.cloneNode(true);
    const row = { element, call };
    element.dataset.callId = call.id;
    element.dataset.createdAt = call.created_at;
    element.querySelector("details").addEventListener("toggle", (event) => {
      if (event.target.open) this.renderBody(row);
    });
    const older = [...this.list.children].find((other) => other.dataset.createdAt <= call.created_at);
    this.list.insertBefore(element, older ?? null);
    this.rows.set(call.id, row);
    while (this.list.children.length > MOST) {
      const last = this.list.lastElementChild;
      this.rows.delete(last.dataset.callId);
      last.remove();
    }
    return row;
  }

  renderBody(row) {
    const { call } = row;
    const body = row.element.querySelector('[data-slot="body"]');
    const times = [
      ["Received", clockTime(call.created_at)],
      call.waited_ms === null ? null : ["Waited for a decision", duration(call.waited_ms)],
      call.ran_ms === null ? null : ["Ran for", duration(call.ran_ms)],
      call.detail ? [call.state === "rejected" ? "Reason" : "Detail", visible(call.detail)] : null,
      ["Call", code(call.id)],
    ];
    body.replaceChildren(
      el("dl", "facts", ...times.filter(Boolean).map(([name, value]) =>
        el("div", "fact", el("dt", "", name), el("dd", "", value)))),
      el("h4", "", "Touched"), el("ul", "facets", ...facetList(call.facets)),
      el("h4", "", "Verdict"), el("div", "why", ...verdict(call)),
      el("h4", "", "Arguments"), el("div", "arguments", argumentTree(call.arguments, call)),
      ...this.stopButton(call),
    );
  }

  stopButton(call) {
    if (call.state !== "running" || !this.me.roles.includes("operator")) return [];
    const problem = el("p", "problem");
    const button = el("button", "reject", "Stop this call");
    button.type = "button";
    button.dataset.action = "cancel";
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        this.update(await post(`calls/${encodeURIComponent(call.id)}/cancel`));
      } catch (failure) {
        problem.textContent = failure.message;
        button.disabled = false;
      }
    });
    return [problem, button];
  }
}

function verdict(call) {
  if (call.verdict === "allow") {
    return [el("p", "decided-by", "Allowed by ", ...call.decided_by.map((name) => code(name, "name")))];
  }
  return why(call);
}

/** The word for a call's state, and how it is coloured. */
export function standing(call) {
  switch (call.state) {
    case "running":
      return ["running", "running"];
    case "completed":
      return call.tool_error ? ["completed, tool error", "warn"] : ["completed", "ok"];
    case "failed":
      return [call.may_have_run ? "failed, may have run" : "failed", "bad"];
    case "rejected":
      return [REJECTED[call.reason] ?? `rejected: ${call.reason}`, "no"];
    default:
      return [call.state, "plain"];
  }
}

const REJECTED = {
  policy: "rejected by policy",
  guardrail: "rejected by guardrail",
  approver: "rejected by approver",
  expired: "expired",
  stale: "rejected, stale",
};
