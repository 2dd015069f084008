// Asks for the page again when something has changed, soon for the first change and then with pauses.

import { replaceSections } from "./sections.js";

const SOON_MS = 300; // what happens at once is shown at once
const ANSWERED_MS = 20_000;

export class Refresher {
  #url;
  #replaced;
  #pause;
  #timer = 0;
  #isAsking = false;
  #isWanted = false;
  #notBefore = 0;

  /** Asks `url()`, with pauses of `pause` ms; calls `replaced` when the document that has come is shown. */
  constructor(url, replaced, pause) {
    this.#url = url;
    this.#replaced = replaced;
    this.#pause = pause;
  }

  /** Asks soon, and again until there is an answer: perhaps nothing changes any more. */
  request() {
    this.#isWanted = true;
    if (this.#isAsking || this.#timer) return;
    this.#timer = setTimeout(() => this.#ask(), Math.max(SOON_MS, this.#notBefore - Date.now()));
  }

  async #ask() {
    this.#timer = 0;
    this.#isWanted = false;
    this.#isAsking = true;
    try {
      const headers = { Accept: "text/html" };
      const response = await fetch(this.#url(), { headers, signal: AbortSignal.timeout(ANSWERED_MS) });
      if (response.redirected) return location.reload(); // the session has ended: the coordinator asks to log in
      if (response.ok) this.#show(new DOMParser().parseFromString(await response.text(), "text/html"));
      else this.#isWanted ||= response.status >= 500;
    } catch (error) {
      if (!["TypeError", "TimeoutError", "AbortError"].includes(error.name)) throw error;
      this.#isWanted = true;
    } finally {
      this.#isAsking = false;
      this.#notBefore = Date.now() + this.#pause;
    }
    if (this.#isWanted) this.request();
  }

  #show(made) {
    document.title = made.title;
    replaceSections(made);
    this.#replaced();
  }
}
