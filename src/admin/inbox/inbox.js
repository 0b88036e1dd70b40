// The page: logging in, following the gateway's events, and keeping the two lists true.

import { Problem, all, follow, get, login as logIn, post } from "./api.js";
import { Card } from "./card.js";
import { Deck } from "./deck.js";
import { listen } from "./keys.js";
import { Pages } from "./pages.js";
import { Recent } from "./recent.js";
import { el, visible } from "./show.js";
import { clockTime, tick } from "./time.js";
import { Tools } from "./tools.js";

/** A click counts only if nothing has moved for this long, ms: nobody can aim at what was not there yet. */
const GUARD = 400;
/** How long a settled card stays to be read, ms. */
const LINGER = 8000;
const MOST_WAITING = 1000;
/** A card of which less than this is left on the screen, px, has had its turn. */
const LEAST = 180;

const by = (id) => document.getElementById(id);
const cards = new Map();
const deck = new Deck(cards, { moved: () => guard() });
let current, turning;
let me, recent, tools, pages, unfollow, guardTimer, focused;

start();

async function start() {
  by("login-form").addEventListener("submit", (event) => {
    event.preventDefault();
    login(by("login-token").value.trim());
  });
  by("logout").addEventListener("click", async () => {
    await post("logout").catch(() => {});
    showLogin("");
  });
  setInterval(() => tick(), 1000);
  listen(deck);
  addEventListener("scroll", turnSoon, { passive: true });
  addEventListener("resize", turnSoon);
  by("waiting").addEventListener("toggle", turnSoon, { capture: true });
  addEventListener("hashchange", openLinked);
  by("notify").addEventListener("click", async () => {
    await Notification.requestPermission();
    by("notify").hidden = true;
  });
  const link = /^#login=(.+)$/.exec(location.hash);
  // Out of the address bar before anything else, so that no history, bookmark or screenshot keeps it.
  if (link) history.replaceState(null, "", location.pathname + location.search);
  if (link) await login(link[1]);
  else await enter();
}

async function login(token) {
  by("login-problem").textContent = "";
  by("login-submit").disabled = true;
  try {
    open(await logIn(token));
  } catch (problem) {
    // A link that is used up is no harm to somebody who is logged in already.
    await enter(problem.message);
  } finally {
    by("login-submit").disabled = false;
    by("login-token").value = "";
  }
}

/** Shows the inbox if this browser is logged in, else the form. */
async function enter(message = "") {
  try {
    open(await get("me"));
  } catch (problem) {
    if (problem instanceof Problem && problem.status === 401) {
      showLogin(message);
    } else {
      showLogin(problem.message);
      setTimeout(() => by("login").hidden || enter(message), 3000);
    }
  }
}

function showLogin(message) {
  unfollow?.();
  for (const id of ["inbox", "session", "nav", "foot"]) by(id).hidden = true;
  cards.clear();
  by("waiting").replaceChildren();
  by("recent").replaceChildren();
  by("login").hidden = false;
  by("login-problem").textContent = message;
  document.title = "Portcullis";
}

function open(who) {
  me = who;
  recent = new Recent(me);
  tools = new Tools(me);
  by("login").hidden = true;
  for (const id of ["inbox", "session", "nav", "foot"]) by(id).hidden = false;
  by("notify").hidden = !("Notification" in window) || Notification.permission !== "default";
  by("nav-questions").hidden = !me.clarifications;
  pages ??= new Pages(me);
  pages.me = me;
  pages.tools = tools;
  by("person").textContent = me.name;
  by("version").textContent = `Portcullis ${me.version}`;
  unfollow?.();
  let queue = null;
  unfollow = follow({
    open: async () => {
      // What happens while the lists are fetched is newer than they are.
      queue = [];
      try {
        await load();
        connection("live");
      } catch (problem) {
        if (problem.status === 401) return showLogin("Your session has ended. Sign in again.");
        notice(problem.message);
      }
      const waiting = queue ?? [];
      queue = null;
      for (const [name, object] of waiting) take(name, object);
    },
    event: (name, object) => (queue ? queue.push([name, object]) : take(name, object)),
    lost: () => connection("reconnecting"),
    refused: () => showLogin("Your session has ended. Sign in again."),
  });
}

function connection(state) {
  by("inbox").dataset.connection = state;
  count();
  by("connection").textContent = state === "live" ? "Live" : "Reconnecting…";
  by("connection").className = `pill ${state}`;
}

async function load() {
  const [waiting, approved, calls, policy] = await Promise.all([
    all("approvals?limit=200&state=waiting", MOST_WAITING),
    all("approvals?limit=200&state=approved", MOST_WAITING), // decided, and waiting for their agents
    get("calls?limit=50"),
    get("policy"),
    tools.load(),
  ]);
  const there = new Set();
  for (const approval of [...waiting, ...approved]) {
    there.add(approval.id);
    takeApproval(approval, { quietly: true });
  }
  for (const card of cards.values()) {
    if (!there.has(card.approval.id) && !card.isOver) card.refresh();
  }
  by("recent-empty").hidden = calls.items.length > 0;
  for (const call of calls.items.reverse()) recent.update(call);
  showPolicy(policy);
  deck.arrange();
  count();
  openLinked();
}

/** The approval that the address names, if it names one. */
function openLinked() {
  const wanted = /^#\/approvals\/([\w-]+)$/.exec(location.hash)?.[1];
  if (wanted) openOne(wanted);
}

/** The approval that a link names. */
async function openOne(id) {
  if (!cards.has(id)) {
    try {
      add(await get(`approvals/${encodeURIComponent(id)}`));
    } catch (problem) {
      return notice(problem.message);
    }
  }
  cards.get(id)?.open();
}

function take(name, object) {
  pages?.take(name);
  if (name === "approval") takeApproval(object, { quietly: false });
  if (name === "call") recent.update(object);
  if (name === "tool") tools.update(object);
  if (name === "policy") showPolicy(object);
}

function takeApproval(approval, { quietly }) {
  const card = cards.get(approval.id);
  if (card) {
    card.update(approval);
  } else if (approval.state === "waiting" || approval.state === "approved") {
    add(approval, quietly);
    if (!quietly) tell(approval);
  }
}

function add(approval, many) {
  const card = new Card(approval, me, { changed, gone: drop }, cards.size);
  cards.set(approval.id, card);
  deck.add(card, many);
  tick(card.element);
  if (many) return;
  guard();
  count();
}

/** Says that something new waits: to a screen reader, and by the browser where that is allowed. */
function tell({ id, call }) {
  by("announce").textContent = `New request: ${call.agent}, ${call.label}`;
  if ("Notification" in window && Notification.permission === "granted" && document.hidden) {
    const shown = new Notification("Portcullis: a call waits", { body: `${call.agent}: ${call.label}`.slice(0, 120), tag: id });
    shown.onclick = () => {
      focus();
      location.hash = `#/approvals/${id}`;
      openOne(id);
    };
  }
}

/** A settled card stays a while with how it ended, then goes. */
function changed(card) {
  if (card.isOver) card.leaving ??= setTimeout(() => leave(card), LINGER);
  guard();
  count();
}

/** Not while somebody points at the list: what stands below would move up. */
function leave(card) {
  if (by("waiting").matches(":hover") && cards.size > 1) card.leaving = setTimeout(() => leave(card), LINGER / 4);
  else drop(card);
}

function drop(card) {
  clearTimeout(card.leaving);
  if (cards.get(card.approval.id) === card) cards.delete(card.approval.id);
  card.element.remove();
  guard();
  count();
}

function turnSoon() {
  turning ??= requestAnimationFrame(() => {
    turning = null;
    turn();
  });
}

/**
 * The card whose buttons stay on the screen: the first open one that is on it. When another takes its turn, the buttons are
 * another call's.
 */
function turn() {
  const isOn = ({ details, element }) => details.open && element.getBoundingClientRect().bottom > LEAST;
  const now = deck.visible.find(isOn);
  const before = current;
  if (now === before) return;
  current = now;
  before?.element.classList.remove("current");
  now?.element.classList.add("current");
  if (before) guard();
}

/** Something moved: for a moment no click counts, since it was aimed at what stood there before. */
function guard() {
  if (document.activeElement?.dataset.action) focused = document.activeElement;
  for (const card of cards.values()) card.setGuarded(true);
  deck.setGuarded(true);
  turnSoon();
  clearTimeout(guardTimer);
  guardTimer = setTimeout(() => {
    for (const card of cards.values()) card.setGuarded(false);
    deck.setGuarded(false);
    // A disabled button loses the keyboard's focus; give it back unless the person has moved on.
    if (focused?.isConnected && document.activeElement === document.body) focused.focus();
    focused = null;
  }, GUARD);
}

function count() {
  const open = [...cards.values()].filter((card) => card.approval.state === "waiting").length;
  by("waiting-count").textContent = String(open);
  by("waiting-count").classList.toggle("some", open > 0);
  by("nav-count").textContent = String(open);
  by("nav-count").classList.toggle("some", open > 0);
  const isLive = by("inbox").dataset.connection === "live";
  by("waiting-empty").hidden = cards.size > 0 || !isLive;
  by("waiting-unknown").hidden = isLive;
  document.title = open > 0 ? `(${open}) Portcullis` : "Portcullis";
}

function showPolicy(policy) {
  by("policy").dataset.version = policy.version;
  by("policy-version").textContent = policy.version.replace(/^sha256:/, "").slice(0, 12);
  by("policy-version").title = policy.version;
  by("policy-loaded").textContent = `in force since ${clockTime(policy.loaded_at)}`;
  by("policy-files").replaceChildren(...policy.files.map((file) => el("li", "", visible(file))));
  notice(policy.error ? `The last policy reload was refused; the policy before it stays in force.\n${policy.error}` : "");
}

function notice(text) {
  by("notice").hidden = text === "";
  by("notice").replaceChildren(visible(text, { lines: true }));
}
