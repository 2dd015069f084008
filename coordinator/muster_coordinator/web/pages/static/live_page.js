// What every page does by itself: it follows the fleet, says when it cannot, and listens to keys.

import { FleetState } from "./fleet_state.js";
import { listenToKeys } from "./keys.js";
import { LiveMap, showCounts } from "./live_map.js";
import { Refresher } from "./refresher.js";
import { openStream } from "./stream.js";

const SAID_AFTER_S = 5; // a connection that comes back within seconds is no news
const SWEEPS_MS = 3_000;
const PAUSE_MS = 2_000;
const STORED_MS = 3_000; // a change is heard before it is stored, and pages are made of what is stored
const MAP_PAUSE_MS = 10_000; // the map of a large fleet takes the coordinator half a second

const main = document.getElementById("main");
const banner = document.getElementById("stale");
const [subject, name] = (main.dataset.of ?? "").split(/:(.*)/);

const shownLeaves = () => document.querySelector("[data-leaves]")?.dataset.leaves;

let state = null, map = null, mapIsWhole = true, leaves = shownLeaves(), again = 0;
const page = new Refresher(() => (subject === "fleet" ? "./?part=text" : location.href), pageReplaced, PAUSE_MS);
const wholePage = new Refresher(() => location.href, mapReplaced, MAP_PAUSE_MS);

function begin(snapshot) {
  const isShown = state === null && main.dataset.seen === `${snapshot.epoch}-${snapshot.version}`;
  state = new FleetState(snapshot);
  showMap();
  if (!isShown) page.request();
}

function apply(change) {
  const before = JSON.stringify(state.numbers);
  state.apply(change);
  showMap();
  showConnection(false, 0);
  const isNews = change.nodes.name.length + change.gone.length > 0 || JSON.stringify(state.numbers) !== before;
  const isOurs = subject !== "node" || [...change.nodes.name, ...change.gone].includes(name);
  if (!(subject && isNews && isOurs)) return;
  page.request();
  clearTimeout(again);
  again = setTimeout(() => page.request(), STORED_MS);
}

function showMap() {
  const section = document.querySelector("section[aria-labelledby=map]");
  if (!section || !state) return;
  map ??= new LiveMap(section);
  const isWhole = map.show(state);
  showCounts(section, state);
  if (!isWhole && mapIsWhole) wholePage.request();
  mapIsWhole = isWhole;
}

/** The nodes may have changed again while the coordinator made the map. */
function mapReplaced() {
  map = null;
  mapIsWhole = true;
  showMap();
}

/** A leaf that is bad as a whole has a stripe on the map, which only the coordinator draws. */
function pageReplaced() {
  if (shownLeaves() !== leaves) wholePage.request();
  leaves = shownLeaves();
}

function showConnection(isStale, seconds) {
  let text = "";
  if (isStale && seconds >= SAID_AFTER_S) {
    text = `Not up to date: the coordinator has not answered for ${seconds} s. What you see is older than that.`;
  } else if (state && !state.isCurrent) {
    text = "Not up to date: the coordinator is not connected to its broker. What you see is the last known state.";
  }
  if (banner.textContent !== text) banner.textContent = text;
  banner.hidden = !text;
  document.documentElement.classList.toggle("stale", Boolean(text));
}

listenToKeys();
if (subject) {
  openStream({ onSnapshot: begin, onChange: apply, onStale: showConnection });
  if (subject === "sweeps") setInterval(() => !document.hidden && state?.numbers.sweeps && page.request(), SWEEPS_MS);
}
