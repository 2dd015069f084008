// The sections of the page, which the coordinator makes again when something has changed.

const FIELDS = "input, select, textarea";
const SECTIONS = "main section:not([data-keep])"; // what a script of its own keeps up to date stays

/** Puts the sections of another document in place of the equally named ones, unless a person uses one of them.
 *
 * If there is a section that the page does not have yet, the whole content is replaced.
 */
export function replaceSections(made) {
  const before = byName(document), after = byName(made);
  const isNew = [...after.keys()].some(name => !before.has(name));
  if (isNew) return replace(document.getElementById("main"), made.getElementById("main"));
  for (const [name, section] of after) replace(before.get(name), section);
  replace(document.querySelector("body > footer"), made.querySelector("body > footer"));
}

function byName(page) {
  const nameOf = section => section.getAttribute("aria-labelledby") ?? section.getAttribute("aria-label");
  return new Map([...page.querySelectorAll(SECTIONS)].map(section => [nameOf(section), section]));
}

/** Whether a person types in it, or has selected text of it. */
function isInUse(part) {
  const selected = document.getSelection();
  const isSelected = !selected.isCollapsed && part.contains(selected.anchorNode);
  return isSelected || (part.contains(document.activeElement) && document.activeElement.matches(FIELDS));
}

function replace(old, made) {
  if (!old || !made || isInUse(old) || made.isEqualNode(old)) return;
  const keepFocus = focusIn(old), keepView = viewOf(old);
  keepView(made);
  old.replaceWith(document.adoptNode(made));
  keepFocus(made);
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
