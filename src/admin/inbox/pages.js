// The pages beside the inbox: history, grants, agents, policy. Each is fetched when it is opened, and kept true by events.

import { all, get, post, remove, stringify } from "./api.js";
import { code, el, setText, visible } from "./show.js";
import { clockTime, duration, tick } from "./time.js";
import { standing } from "./recent.js";

const by = (id) => document.getElementById(id);
const PAGES = ["inbox", "history", "grants", "agents", "tools", "questions", "policy"];

export class Pages {
  constructor(me) {
    this.me = me;
    addEventListener("hashchange", () => this.show());
    by("history-form").onsubmit = (event) => {
      event.preventDefault();
      this.history(true);
    };
    by("history-more").onclick = () => this.history(false);
    by("history-export").onclick = () => this.exported();
    by("explain-form").onsubmit = (event) => {
      event.preventDefault();
      this.explain();
    };
    this.show();
  }

  get isOperator() {
    return this.me.roles.includes("operator");
  }

  /** The page that the address names; the inbox for any other. */
  show() {
    const name = /^#\/(\w+)/.exec(location.hash)?.[1];
    const before = this.page;
    this.page = PAGES.includes(name) ? name : "inbox";
    // Another page begins at its top, a link to a call at that call.
    if (before && before !== this.page && name !== "approvals") scrollTo(0, 0);
    for (const section of document.querySelectorAll("[data-page]")) {
      section.classList.toggle("elsewhere", section.dataset.page !== this.page);
      if (section.classList.contains("page")) section.hidden = section.dataset.page !== this.page;
    }
    for (const link of by("nav").querySelectorAll("a")) {
      if (link.hash === `#/${this.page}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const load = { history: () => this.history(true), grants: () => this.grants(), agents: () => this.agents(), tools: () => this.toolList(), questions: () => this.questions(), policy: () => this.policy() }[this.page];
    load?.();
  }

  /** Something changed that an open page shows. */
  take(name) {
    if (name === "grant" && this.page === "grants") this.grants();
    if (name === "agent" && this.page === "agents") this.agents();
    // Not while somebody writes an answer.
    const writes = by("questions-list").contains(document.activeElement);
    if (name === "clarification" && this.page === "questions" && !writes) this.questions();
    if (name === "policy" && this.page === "policy") this.policy();
    if (name === "policy" && this.page === "tools") this.toolList();
  }

  // ---- history

  query() {
    const form = new FormData(by("history-form"));
    return new URLSearchParams([...form].filter(([, value]) => value !== ""));
  }

  async history(anew) {
    const query = this.query();
    if (!anew && this.cursor) query.set("cursor", this.cursor);
    query.set("limit", "50");
    try {
      const page = await get(`calls?${query}`);
      this.cursor = page.next;
      const rows = page.items.map(row);
      if (anew) by("history-list").replaceChildren(...rows);
      else by("history-list").append(...rows);
      by("history-more").hidden = !page.next;
      by("history-problem").textContent = page.items.length === 0 && anew ? "No call matches." : "";
      tick(by("history-list"));
    } catch (problem) {
      by("history-problem").textContent = problem.message;
    }
  }

  async exported() {
    try {
      const query = this.query();
      query.set("limit", "200");
      const calls = await all(`calls?${query}`, 1000);
      const link = el("a");
      link.href = URL.createObjectURL(new Blob([stringify(calls)], { type: "application/json" }));
      link.download = "calls.json";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    } catch (problem) {
      by("history-problem").textContent = problem.message;
    }
  }

  // ---- grants

  async grants() {
    try {
      const { items } = await get("grants");
      by("grants-empty").hidden = items.length > 0;
      by("grants-list").replaceChildren(...items.map((grant) => this.grant(grant)));
      by("grants-problem").textContent = "";
      tick(by("grants-list"));
    } catch (problem) {
      by("grants-problem").textContent = problem.message;
    }
  }

  grant(grant) {
    const state = el("span", `badge state ${grant.state === "active" ? "ok" : "plain"}`, grant.state.replace("_", " "));
    const left = el("span", "ago");
    if (grant.state === "active") left.dataset.expiresAt = grant.expires_at;
    const within = grant.bound === "session" ? " in one session" : "";
    const lines = [
      `Used ${grant.used} times, ${grant.uses_left} left. Lifts ${grant.rule}${within}.`,
      `Approved by ${grant.by.join(", ")} at ${clockTime(grant.created_at)}.`,
      grant.ended_by ? `Ended: ${grant.ended_by}.` : "",
    ].filter(Boolean);
    const row = el("li", "row", el("div", "call-top", state, left), el("p", "call-label", visible(grant.sentence)),
      ...lines.map((line) => el("p", "call-from", visible(line))));
    row.dataset.grantId = grant.id;
    row.dataset.state = grant.state;
    const may = this.isOperator || grant.by.includes(this.me.name);
    if (grant.state === "active" && may) {
      row.append(this.button("reject", "revoke", "End it", by("grants-problem"), async () => {
        await remove(`grants/${encodeURIComponent(grant.id)}`);
        await this.grants();
      }));
    }
    return row;
  }

  // ---- agents

  async agents() {
    try {
      const { items } = await get("agents");
      by("agents-list").replaceChildren(...items.map((agent) => this.agent(agent)));
      by("agents-problem").textContent = "";
      tick(by("agents-list"));
    } catch (problem) {
      by("agents-problem").textContent = problem.message;
    }
  }

  agent(agent) {
    const state = el("span", `badge state ${agent.paused ? "no" : "ok"}`, agent.paused ? "paused" : "may call");
    const last = el("time", "ago");
    if (agent.last_call) last.dataset.at = agent.last_call;
    const owner = agent.owner ? ` of ${agent.owner}` : "";
    const row = el("li", "row", el("div", "call-top", state, last),
      el("p", "call-label", visible(`${agent.name}${owner}`)),
      el("p", "call-from", visible(`Group ${agent.group}. ${agent.waiting} waiting, ${agent.running} running.`)));
    row.dataset.agent = agent.name;
    if (agent.paused) {
      const { by: who, at, reason } = agent.paused;
      row.append(el("p", "call-from", visible(`Paused by ${who} at ${clockTime(at)}${reason ? `: ${reason}` : ""}.`)));
    }
    if (!this.isOperator) return row;
    const path = `agents/${encodeURIComponent(agent.name)}`;
    const reason = el("input");
    Object.assign(reason, { placeholder: "Why (the agent is told)", maxLength: 1000, hidden: Boolean(agent.paused) });
    reason.setAttribute("aria-label", `Why ${agent.name} is paused`);
    const act = (word, body) => async () => {
      await post(`${path}/${word}`, body?.());
      await this.agents();
    };
    const problem = by("agents-problem");
    const buttons = el("div", "buttons");
    if (agent.paused) buttons.append(this.button("", "resume", "Let it call again", problem, act("resume")));
    else buttons.append(this.button("reject", "pause", "Pause", problem, act("pause", () => ({ reason: reason.value.trim() || null }))));
    if (agent.running + agent.waiting > 0) buttons.append(this.button("", "cancel-all", "Stop all its calls", problem, act("cancel")));
    row.append(reason, buttons);
    return row;
  }

  // ---- tools

  /** Their list keeps itself; what policy says of them is asked anew. */
  async toolList() {
    try {
      await this.tools?.load();
    } catch (problem) {
      by("tools-problem").textContent = problem.message;
    }
  }

  // ---- questions

  async questions() {
    try {
      const { items } = await get("clarifications?limit=100");
      by("questions-empty").hidden = items.length > 0;
      by("questions-list").replaceChildren(...items.map((question) => this.question(question)));
      by("questions-problem").textContent = "";
      tick(by("questions-list"));
    } catch (problem) {
      by("questions-problem").textContent = problem.message;
    }
  }

  /** A question as the agent's own words, and a plain field for the answer: nothing here looks like a decision. */
  question(question) {
    const left = el("span", "ago");
    if (question.state === "waiting") left.dataset.expiresAt = question.expires_at;
    const said = el("p", "call-from", "The agent says: ", el("span", "value text", "“", visible(question.question, { lines: true }), "”"));
    const row = el("li", "row", el("div", "call-top", el("span", "badge plain", question.state), left),
      el("p", "call-label", visible(`${question.agent} (group ${question.group}) asks`)), said);
    row.dataset.questionId = question.id;
    row.dataset.state = question.state;
    if (question.answer !== null) row.append(el("p", "call-from", visible(`${question.answered_by ?? "Somebody"} answered: “${question.answer}”`)));
    if (question.state !== "waiting" || !this.me.roles.includes("approver")) return row;
    const field = el("input");
    Object.assign(field, { maxLength: 4000, autocomplete: "off" });
    field.setAttribute("aria-label", `Your answer to ${question.agent}`);
    const choices = question.choices.map((choice) => {
      const button = el("button", "quiet", visible(choice));
      button.type = "button";
      button.addEventListener("click", () => {
        field.value = choice;
        field.focus();
      });
      return button;
    });
    const problem = el("p", "problem");
    problem.setAttribute("role", "alert");
    let anyway = false;
    const send = this.button("", "answer", "Send this text", problem, async () => {
      try {
        await post(`clarifications/${encodeURIComponent(question.id)}/answer`, { answer: field.value, anyway });
      } catch (failure) {
        // Once more, by another click on another word: it looks like a secret.
        if (failure.status === 422) {
          anyway = true;
          send.textContent = "Send it although it looks like a secret";
        }
        throw failure;
      }
      await this.questions();
    });
    field.addEventListener("input", () => {
      anyway = false;
      send.textContent = "Send this text";
    });
    row.append(el("div", "presets", ...choices), field, problem, send);
    return row;
  }

  // ---- policy

  async policy() {
    try {
      const policy = await get("policy");
      by("rules").replaceChildren(...policy.rules.map(rule));
      by("policy-lints").replaceChildren(...policy.lints.map((lint) => el("p", "floor", visible(`${lint.file}:${lint.line}: ${lint.message}${lint.code ? ` (${lint.code})` : ""}`))));
    } catch (problem) {
      by("explain-problem").textContent = problem.message;
    }
  }

  async explain() {
    by("explain-problem").textContent = "";
    try {
      const answer = await post("policy/explain", by("explain-text").value);
      const block = el("pre", "block", visible(stringify(answer), { lines: true }));
      block.tabIndex = 0;
      const verdict = el("span", `badge ${answer.verdict}`, answer.verdict);
      by("explain-answer").replaceChildren(el("p", "", verdict, " ", visible((answer.decided_by ?? []).join(", "))), block);
    } catch (problem) {
      by("explain-answer").replaceChildren();
      by("explain-problem").replaceChildren(visible(problem.message));
    }
  }

  button(className, action, text, problem, work) {
    const button = el("button", className, text);
    button.type = "button";
    button.dataset.action = action;
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        await work();
      } catch (failure) {
        problem.textContent = failure.message;
        button.disabled = false;
      }
    });
    return button;
  }
}

/** A call in one row. */
export function row(call) {
  const [word, kind] = standing(call);
  const at = el("time", "ago");
  at.dataset.at = call.ended_at ?? call.created_at;
  const label = el("p", "call-label");
  setText(label, call.label);
  const times = [call.waited_ms === null ? "" : `waited ${duration(call.waited_ms)}`, call.ran_ms === null ? "" : `ran ${duration(call.ran_ms)}`];
  const details = [`${call.agent} → ${call.upstream}`, ...times, call.detail ?? "", call.grant ? `by grant ${call.grant}` : ""].filter(Boolean).join(" · ");
  const item = el("li", "row", el("div", "call-top", el("span", `badge state ${kind}`, visible(word)), at), label, el("p", "call-from", visible(details)));
  item.dataset.callId = call.id;
  item.dataset.state = call.state;
  return item;
}

function rule(rule) {
  const place = rule.file ? `${rule.file}${rule.line ? `:${rule.line}` : ""}` : "built in";
  const often = rule.decided === undefined ? "" : ` · decided ${rule.decided} calls`;
  const item = el("li", "row", el("div", "call-top", el("span", `badge ${rule.verdict}`, rule.verdict), el("span", "ago", visible(place))),
    el("p", "call-label", code(rule.name)), el("p", "call-from", visible(`${rule.guardrail ? "guardrail" : "rule"}${often}`)));
  item.dataset.rule = rule.name;
  return item;
}
