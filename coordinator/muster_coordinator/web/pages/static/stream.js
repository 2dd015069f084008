// What this tab gets of the fleet: a snapshot, and then what changes. A hidden tab gets nothing until it is shown.

import { Feed } from "./feed.js";

const LOOK_MS = 1_000;

const listeners = [];
let port = null, lostAt = null;

/** Calls `onSnapshot` and `onChange` with what arrives, and `onStale` with whether and how long nothing can arrive. */
export function openStream(listener) {
  listeners.push(listener);
  if (!port) connect();
}

function connect() {
  port = portToFeed();
  port.onmessage = ({ data }) => take(data);
  document.addEventListener("visibilitychange", tell);
  window.addEventListener("pagehide", () => port.postMessage("end"));
  window.addEventListener("pageshow", event => event.persisted && tell());
  setInterval(() => lostAt && sayStale(), LOOK_MS);
  tell();
}

function portToFeed() {
  if ("SharedWorker" in window) {
    return new SharedWorker(new URL("stream_worker.js", import.meta.url), { type: "module", name: "muster" }).port;
  }
  const channel = new MessageChannel();
  new Feed().add(channel.port1);
  return channel.port2;
}

function tell() {
  port.postMessage(document.hidden ? "end" : "begin");
}

function take(message) {
  if (message.snapshot) for (const { onSnapshot } of listeners) onSnapshot?.(message.snapshot);
  if (message.change) for (const { onChange } of listeners) onChange?.(message.change);
  if ("lostAt" in message) {
    lostAt = message.lostAt;
    sayStale();
  }
}

function sayStale() {
  const seconds = lostAt ? Math.round((Date.now() - lostAt) / 1000) : 0;
  for (const { onStale } of listeners) onStale?.(lostAt !== null, seconds);
}
