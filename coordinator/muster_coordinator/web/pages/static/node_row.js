// The cells of a node in the table, as the template nodes.html.jinja has them.

const SVG = "http://www.w3.org/2000/svg";
const UNITS = [[86_400, "d"], [3_600, "h"], [60, "min"]];

/** Writes the cells of a node into its row; `at` is the time now, in seconds. */
export function fillRow(row, node, at) {
  if (!row.cells.length) build(row);
  const [name, state, service, block, rack, leaf, findings, changed] = row.cells;
  const link = name.firstChild;
  link.href = `nodes/${encodeURIComponent(node.name)}`;
  link.firstChild.textContent = plain(node.name);
  state.firstChild.firstChild.setAttribute("href", `#${node.condition}`);
  state.lastChild.data = ` ${stateText(node)}`;
  service.textContent = node.service + (node.dryRun && node.service !== "IN_SERVICE" ? " (dry run)" : "");
  block.textContent = plain(node.block);
  rack.textContent = plain(node.rack);
  leaf.textContent = plain(node.leaf);
  findings.textContent = plain(causeLabel(node.worst));
  if (node.findings > 1) findings.append(rest(node.findings - 1));
  changed.textContent = node.changedAt == null ? "" : ageText(at - node.changedAt);
  for (const cell of row.cells) cell.title = cell.textContent.trim();
}

/** Goes to the page of the node of a row. */
export function openRow(row) {
  row.querySelector("a").click();
}

/** The form of a condition. */
export function symbol(condition) {
  const form = document.createElementNS(SVG, "svg"), use = document.createElementNS(SVG, "use");
  form.setAttribute("class", "symbol");
  for (const side of ["width", "height"]) form.setAttribute(side, "12");
  form.setAttribute("viewBox", "0 0 12 12");
  form.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#${condition}`);
  form.append(use);
  return form;
}

function build(row) {
  const name = document.createElement("th"), link = document.createElement("a");
  name.scope = "row";
  link.className = "node";
  link.append(document.createElement("bdi"));
  name.append(link);
  row.append(name, ...Array.from({ length: 7 }, () => document.createElement("td")));
  row.cells[1].append(symbol("unknown"), " ");
}

function stateText({ condition, lost, left }) {
  return condition + (lost && condition !== "silent" ? ", silent" : "") + (left ? ", left" : "");
}

/** What operators call a finding, as model/findings.py has it: `kernel_log.xid 79` is XID 79. */
function causeLabel(code) {
  const [, what, number] = code?.match(/\.(s?xid) (\d+)$/) ?? [];
  return what ? `${what.toUpperCase()} ${number}` : code;
}

function rest(number) {
  const more = document.createElement("span");
  more.className = "rest";
  more.textContent = ` and ${number} more`;
  return more;
}

/** Text without characters that could rearrange what a person reads, as the templates show it. */
function plain(text) {
  return (text ?? "").split(/\s+/).join(" ").trim().replace(/[^\P{C}]|[^\P{Z} ]/gu, "\ufffd");
}

/** As views/pages/ages.py has it. */
function ageText(seconds) {
  for (const [length, unit] of UNITS) {
    if (seconds >= 2 * length) return `${Math.round(seconds / length)} ${unit}`;
  }
  return `${Math.max(0, Math.round(seconds))} s`;
}
