// The keyboard: one list to walk, one key for what is not dangerous.

const by = (id) => document.getElementById(id);

/** `deck` has the cards; keys do nothing while somebody writes. */
export function listen(deck) {
  by("help-open").addEventListener("click", () => by("help").showModal());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return send(event, deck);
    const at = document.activeElement;
    if (event.key === "Escape" && at?.matches("input, textarea, select")) return at.blur();
    if (by("inbox").hidden || by("help").open || at?.matches("input, textarea, select")) return;
    const cards = deck.visible;
    const now = cards.findIndex((card) => card.element.contains(at));
    const card = cards[now];
    const keys = {
      j: () => cards[Math.min(now + 1, cards.length - 1)]?.focus(),
      k: () => cards[Math.max(now - 1, 0)]?.focus(),
      a: () => card?.approveByKey(),
      r: () => card?.startRejecting(),
      e: () => card?.startEditing(),
      "/": () => by("search").focus(),
      "?": () => by("help").showModal(),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

// Ctrl+Enter in a note sends the rejection.
function send(event, deck) {
  if (event.key !== "Enter" || !event.target.matches?.('[data-field="note"]')) return;
  deck.visible.find((card) => card.element.contains(event.target))?.decide("reject");
}
