// The table of nodes over the whole fleet: filtered while a person types, sorted, and live.

import { FleetState } from "./fleet_state.js";
import { askForNames, Refused } from "./fleet_names.js";
import { inOrder, isKnown, readOrder, URGENCY } from "./node_order.js";
import { fillRow, openRow, symbol } from "./node_row.js";
import { readSelection } from "./selection.js";
import { openStream } from "./stream.js";
import { WindowedTable } from "./windowed_table.js";

const TYPING_MS = 250; // a person who types on is not interrupted by a question to the coordinator
const ANSWER_MS = 30_000; // labels may have changed since
const AGES_MS = 10_000;

const byId = id => document.getElementById(id);

class NodeTable {
  #state = null;
  #address = readAddress();
  #committed = location.href; // the entry of the history before a person began to type
  #answer = null; // of the coordinator: the question, when it was asked, and the places of names or the refusal
  #asking = null;
  #timer = 0;
  #lost = null;

  constructor() {
    const columns = document.querySelectorAll("#table th[scope=col]");
    this.table = new WindowedTable(byId("table"), { columns: columns.length, fill: this.#fill, open: openRow });
    byId("select").addEventListener("input", () => this.#type());
    byId("filter").addEventListener("submit", event => this.#submit(event));
    byId("main").addEventListener("click", event => this.#click(event));
    window.addEventListener("popstate", () => this.#goTo(readAddress()));
    setInterval(() => this.#refresh(), AGES_MS);
  }

  /** Begins with a whole fleet. */
  begin(snapshot) {
    const isFirst = !this.#state;
    this.#state = new FleetState(snapshot);
    byId("pager")?.remove();
    this.#refresh({ fromTop: isFirst });
  }

  /** Takes what has changed. */
  apply(change) {
    this.#state.apply(change);
    this.#refresh();
  }

  /** Says that no change can arrive for some seconds; null while changes arrive. */
  note(seconds) {
    this.#lost = seconds;
    this.#showConnection();
  }

  #fill = (row, node) => fillRow(row, node, this.#state.at);

  #type() {
    this.#address.select = byId("select").value.trim();
    history.replaceState(null, "", urlOf(this.#address));
    this.#refresh({ fromTop: true, isTyping: true });
  }

  #submit(event) {
    event.preventDefault();
    const address = { ...this.#address, select: byId("select").value.trim() }, group = byId("group").value.trim();
    if (group) location.assign(urlOf({ ...address, group })); // another page
    else this.#push(address);
  }

  /** Follows a link to this table here, as it is a new page otherwise. A link that does not sort keeps the order. */
  #click(event) {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (link.pathname !== location.pathname || link.hash) return;
    event.preventDefault();
    const { select, sort } = readAddress(link.search);
    this.#push({ select, sort: link.dataset.sort ? sort : this.#address.sort });
  }

  /** Goes to an address. The entry in which a person has typed gets its former URL back. */
  #push(address) {
    history.replaceState(null, "", this.#committed);
    if (urlOf(address) !== urlOf(readAddress())) history.pushState(null, "", urlOf(address));
    this.#goTo(address);
  }

  #goTo(address) {
    this.#address = address;
    this.#committed = location.href;
    if (byId("select").value.trim() !== address.select) byId("select").value = address.select;
    this.#refresh({ fromTop: true });
  }

  #refresh({ fromTop = false, isTyping = false } = {}) {
    this.#showConnection();
    const rows = this.#state.rows, { key } = readOrder(this.#address.sort);
    const read = readSelection(this.#address.select);
    const selection = read?.exists(rows) ? read : null;
    const remote = selection ? selection.remote : this.#address.select;
    const sort = isKnown(key) ? "" : key;
    const question = remote || sort ? JSON.stringify([remote, sort]) : "";
    this.#ask(question, isTyping ? TYPING_MS : 0);
    const answer = question ? this.#answer : null;
    if (question && (answer?.question !== question || answer.refused)) return;
    const places = answer?.places;
    const found = rows.filter(row => (!remote || places.has(row.name)) && (!selection || selection.fits(row)));
    this.#explain("");
    this.#show(inOrder(found, this.#address.sort, sort ? places : null), rows.length, fromTop);
  }

  /** Asks the coordinator, unless it has answered this question lately; refreshes when it has answered. */
  #ask(question, delay) {
    const isAnswered = this.#answer?.question === question && Date.now() - this.#answer.at < ANSWER_MS;
    if (this.#asking?.question === question || isAnswered) return;
    this.#asking?.abort.abort();
    clearTimeout(this.#timer);
    this.#asking = null;
    if (!question) return;
    const abort = new AbortController();
    this.#asking = { question, abort };
    this.#timer = setTimeout(async () => {
      const [select, sort] = JSON.parse(question);
      const answer = { question, at: Date.now() };
      try {
        answer.places = await askForNames(select, sort, abort.signal);
      } catch (error) {
        if (abort.signal.aborted) return;
        answer.refused = error instanceof Refused ? error.message : "No answer from the coordinator; it is asked again.";
      }
      if (abort.signal.aborted) return;
      const fromTop = this.#answer?.question !== question;
      this.#answer = answer;
      this.#asking = null;
      if (answer.refused) this.#explain(answer.refused);
      else this.#refresh({ fromTop });
    }, delay);
  }

  #showConnection() {
    let text = "";
    if (!this.#state.isCurrent) text = "Not connected to the broker: this is the last known state.";
    if (this.#lost !== null) text = `No connection to the coordinator for ${this.#lost} s: this is the last known state.`;
    byId("connection").hidden = !text;
    byId("connection").firstElementChild.textContent = text;
  }

  #explain(refused) {
    byId("refused").textContent = refused;
    byId("refused").hidden = !refused;
    byId("select").setAttribute("aria-invalid", Boolean(refused));
    byId("select").setAttribute("aria-describedby", refused ? "refused" : "examples");
  }

  #show(rows, nodes, fromTop) {
    const { key, isBackwards } = readOrder(this.#address.sort);
    for (const link of document.querySelectorAll("#table a[data-sort]")) {
      const isSorted = link.dataset.sort === key, head = link.closest("th");
      if (isSorted) head.setAttribute("aria-sort", isBackwards ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
      link.href = urlOf({ ...this.#address, sort: isSorted && !isBackwards ? `-${key}` : link.dataset.sort });
    }
    byId("table").hidden = !rows.length;
    byId("empty").hidden = Boolean(rows.length);
    byId("empty").textContent = nodes ? "No node fits this selection now." : "No node has reported yet.";
    this.table.show(rows, { fromTop });
    showCounts(rows, nodes);
  }
}

function showCounts(rows, nodes) {
  const counts = new Map();
  for (const { condition, left } of rows) if (!left) counts.set(condition, (counts.get(condition) ?? 0) + 1);
  byId("counts").hidden = !rows.length;
  byId("found").textContent = rows.length.toLocaleString("en");
  byId("nodes").textContent = `${nodes.toLocaleString("en")} node${nodes === 1 ? "" : "s"}`;
  for (const line of document.querySelectorAll("#counts [data-condition]")) {
    const { condition } = line.dataset, number = counts.get(condition) ?? 0;
    line.hidden = !number;
    if (number && !line.querySelector("svg")) line.prepend(symbol(condition), " ");
    line.querySelector("b").textContent = number.toLocaleString("en");
  }
}

function readAddress(search = location.search) {
  const query = new URLSearchParams(search);
  return { select: (query.get("select") ?? "").trim(), sort: query.get("sort")?.trim() || URGENCY };
}

/** The URL of an address, relative to the page. */
function urlOf({ select, sort, group }) {
  const query = new URLSearchParams();
  if (select) query.set("select", select);
  if (sort !== URGENCY) query.set("sort", sort);
  if (group) query.set("group", group);
  return `nodes${query.size ? `?${query}` : ""}`;
}

let table = null; // until the first snapshot, the table that the coordinator has made remains
openStream({
  onSnapshot: snapshot => (table ??= new NodeTable()).begin(snapshot),
  onChange: change => table?.apply(change),
  onStale: (isStale, seconds) => table?.note(isStale ? seconds : null),
});
