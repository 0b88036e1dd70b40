// Countdowns and ages, by the gateway's clock.

let ahead = 0;

/** Learns how far the gateway's clock is ahead of this browser's (a phone may be minutes off). */
export function setClock(serverNow) {
  const difference = serverNow - Date.now();
  ahead = Math.abs(difference) > 2000 ? difference : 0;
}

const now = () => Date.now() + ahead;

/** `90000` as "1 min 30 s", `250` as "250 ms". */
export function duration(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = Math.round((ms % 60_000) / 1000);
  if (minutes < 60) return seconds ? `${minutes} min ${seconds} s` : `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** The time of day, with the date where it is not today. */
export function clockTime(iso) {
  const at = new Date(iso);
  const today = at.toDateString() === new Date().toDateString();
  return at.toLocaleString([], today ? { timeStyle: "medium" } : { dateStyle: "medium", timeStyle: "medium" });
}

function ago(iso) {
  const ms = now() - Date.parse(iso);
  if (ms < 10_000) return "just now";
  if (ms < 60_000) return `${Math.floor(ms / 1000)} s ago`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ago`;
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h ago`;
  return clockTime(iso);
}

function left(iso) {
  const seconds = Math.max(0, Math.ceil((Date.parse(iso) - now()) / 1000));
  const two = (n) => String(n).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const rest = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return [seconds, hours ? `${hours}:${rest}` : rest];
}

/** Brings every countdown and age on the page up to date. */
export function tick(root = document) {
  for (const element of root.querySelectorAll("[data-expires-at]")) {
    const [seconds, text] = left(element.dataset.expiresAt);
    element.textContent = seconds > 0 ? `${text} left` : "expired";
    element.classList.toggle("soon", seconds < 60);
  }
  for (const element of root.querySelectorAll("[data-at]")) {
    element.textContent = ago(element.dataset.at);
  }
}
