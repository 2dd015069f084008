// The sections of the page, which the coordinator makes again when something has changed.

const FIELDS = "input, select, textarea";
const SECTIONS = "main section:not([data-keep])"; // what a script of its own keeps up to date stays
const LOOK_MS = 1_000;

let later = 0;

/** Puts the sections of another document in place of the equally named ones. What a person uses is replaced after that.
 *
 * If there is a section that the page does not have yet, the whole content is replaced.
 */
export function replaceSections(made) {
  clearTimeout(later);
  if (!replaceUnused(made)) later = setTimeout(() => replaceSections(made), LOOK_MS);
}

/** Returns false if anything stays because a person uses it. */
function replaceUnused(made) {
  const before = byName(document), after = byName(made);
  const isNew = [...after.keys()].some(name => !before.has(name));
  if (isNew) return replace(document.getElementById("main"), made.getElementById("main"));
  const areReplaced = [...after].map(([name, section]) => replace(before.get(name), section));
  replace(document.querySelector("body > footer"), made.querySelector("body > footer"));
  return areReplaced.every(Boolean);
}

function byName(page) {
  const nameOf = section => section.getAttribute("aria-labelledby") ?? section.getAttribute("aria-label");
  return new Map([...page.querySelectorAll(SECTIONS)].map(section => [nameOf(section), section]));
}

/** Whether a person types in it, has typed something that is not sent yet, or has selected text of it. */
function isInUse(part) {
  const selected = document.getSelection();
  if (!selected.isCollapsed && part.contains(selected.anchorNode)) return true;
  const isTyped = [...part.querySelectorAll("input")].some(field => field.value !== field.defaultValue);
  return isTyped || (part.contains(document.activeElement) && document.activeElement.matches(FIELDS));
}

/** Returns false if the old part stays because a person uses it. */
function replace(old, made) {
  if (!old || !made || made.isEqualNode(old)) return true;
  if (isInUse(old)) return false;
  const keepFocus = focusIn(old), keepView = viewOf(old);
  keepView(made);
  old.replaceWith(document.adoptNode(made));
  keepFocus(made);
  return true;
}

/** Gives the focus to the same link or the same place of what has replaced the part. */
function focusIn(old) {
  const focused = document.activeElement;
  if (!old.contains(focused)) return () => {};
  const place = [...old.querySelectorAll(focused.localName)].indexOf(focused), link = focused.getAttribute("href");
  return made => {
    const same = [...made.querySelectorAll(focused.localName)];
    const found = (link && same.find(element => element.getAttribute("href") === link)) ?? same[place];
    found?.focus({ preventScroll: true });
  };
}

/** Opens the details that a person has opened. */
function viewOf(old) {
  const opened = [...old.querySelectorAll("details")].map(details => details.open);
  return made => {
    for (const [index, details] of [...made.querySelectorAll("details")].entries()) details.open = opened[index] ?? details.open;
  };
}
