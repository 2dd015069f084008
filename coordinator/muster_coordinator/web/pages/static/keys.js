// Keys of every page; /help lists them.

const PAGES = { f: "", n: "nodes", s: "sweeps", q: "quarantine", e: "events", a: "acceptance", h: "help" };
const AFTER_G_MS = 1_500;
const FIELDS = "input, select, textarea, [contenteditable]";
const LINES = "main tbody th a, main .tasks a, main .changes a, main .sweeps a";

let gAt = -Infinity;

/** Listens to the keys. */
export function listenToKeys() {
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches(FIELDS)) return;
    const isAfterG = event.timeStamp - gAt < AFTER_G_MS;
    gAt = event.key === "g" ? event.timeStamp : -Infinity;
    if (isAfterG && event.key in PAGES ? open(PAGES[event.key]) : press(event.key)) event.preventDefault();
  });
}

function press(key) {
  switch (key) {
    case "/": return focus(document.getElementById("find"));
    case "?": return open("help");
    case "j": return move(1);
    case "k": return move(-1);
  }
}

function open(page) {
  location.assign(new URL(page, new URL("..", import.meta.url)));
  return true;
}

function focus(element) {
  element?.focus();
  return Boolean(element);
}

/** To the next line of what the page lists, or the one before. The whole fleet in a window moves by arrow keys. */
function move(step) {
  const table = document.querySelector("[role=grid]");
  if (table) {
    const key = step > 0 ? "ArrowDown" : "ArrowUp";
    const row = table.querySelector("[tabindex='0']");
    if (row && !table.contains(document.activeElement)) return focus(row);
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    return true;
  }
  const lines = [...document.querySelectorAll(LINES)].filter(line => line.checkVisibility());
  const now = lines.indexOf(document.activeElement);
  return focus(lines[now < 0 ? (step > 0 ? 0 : lines.length - 1) : now + step]);
}
