// A table of any length of which only the visible rows are in the document, as a grid for keyboard and screen reader.
//
// Every row has the same height, so the rows to show follow from the scroll position, and spacers stand for the others.
// The row with the focus is always in the document, wherever it has moved: so it keeps the focus under every change.

const BEYOND = 8; // rows above and below the visible ones, so that scrolling shows no gap

/** Shows items in `scroller`, which has a table with a head. `fill` writes the cells of a row, `open` follows its link. */
export class WindowedTable {
  #scroller; #table; #body; #fill; #open;
  #items = [];
  #rows = new Map(); // by name: the rows in the document
  #spacers = [];
  #height = 32;
  #active = { name: null, index: 0, column: 0 }; // the cell that has the focus, or gets it next
  #frame = 0;
  #isOnPaper = false; // which has no window: all rows are visible

  constructor(scroller, { columns, fill, open }) {
    this.#scroller = scroller;
    this.#table = scroller.querySelector("table");
    this.#body = document.createElement("tbody");
    this.#fill = fill;
    this.#open = open;
    this.columns = columns;
    scroller.classList.add("windowed");
    scroller.removeAttribute("tabindex"); // its cells have one
    this.#table.setAttribute("role", "grid");
    this.#table.setAttribute("aria-readonly", "true");
    this.#table.tHead.rows[0].setAttribute("aria-rowindex", "1");
    this.#table.tBodies[0].replaceWith(this.#body);
    scroller.addEventListener("scroll", () => this.#draw());
    new ResizeObserver(() => this.#draw()).observe(scroller);
    window.addEventListener("beforeprint", () => this.#print(true));
    window.addEventListener("afterprint", () => this.#print(false));
    this.#body.addEventListener("keydown", event => this.#press(event));
    this.#body.addEventListener("focusin", event => this.#focused(event.target));
  }

  /** Shows these items, each with a `name`. `fromTop`: a new list; otherwise rows stay where a reader sees them. */
  show(items, { fromTop = false } = {}) {
    const shift = fromTop ? 0 : this.#shift(items);
    this.#items = items;
    const index = items.findIndex(item => item.name === this.#active.name);
    if (index >= 0) this.#active.index = index;
    else this.#activate(this.#hasFocus && !fromTop ? this.#active.index : 0);
    this.#table.setAttribute("aria-rowcount", items.length + 1);
    this.#render(true);
    const top = fromTop ? 0 : this.#scroller.scrollTop + shift * this.#height;
    if (top !== this.#scroller.scrollTop) {
      this.#scroller.scrollTop = top;
      this.#render(false);
    }
  }

  get #hasFocus() {
    return this.#body.contains(document.activeElement);
  }

  get #headHeight() {
    return this.#table.tHead.offsetHeight;
  }

  /** How many rows most of the visible rows move down. At the top of the list nothing follows them: the worst show. */
  #shift(items) {
    if (!this.#scroller.scrollTop) return 0;
    const places = new Map(items.map((item, index) => [item.name, index]));
    const [first, last] = this.#visible();
    const moves = [];
    for (let index = first; index < last; index++) {
      const place = places.get(this.#items[index].name);
      if (place !== undefined) moves.push(place - index);
    }
    return moves.sort((a, b) => a - b)[moves.length >> 1] ?? 0;
  }

  /** The first visible row, and the first below. */
  #visible() {
    if (this.#isOnPaper) return [0, this.#items.length];
    const { scrollTop, clientHeight } = this.#scroller;
    const last = Math.ceil((scrollTop + clientHeight - this.#headHeight) / this.#height);
    return [Math.min(Math.floor(scrollTop / this.#height), this.#items.length), Math.min(last, this.#items.length)];
  }

  #print(isOnPaper) {
    this.#isOnPaper = isOnPaper;
    this.#render(false);
  }

  #draw() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#render(false);
    });
  }

  #render(isChanged) {
    const [first, last] = this.#visible();
    const from = Math.max(0, first - BEYOND), to = Math.min(this.#items.length, last + BEYOND);
    const shown = Array.from({ length: Math.max(0, to - from) }, (_, place) => from + place);
    const { index } = this.#active;
    if (index < from && index < this.#items.length) shown.unshift(index);
    else if (index >= to && index < this.#items.length) shown.push(index);
    const hadFocus = this.#hasFocus, before = this.#rows;
    this.#rows = new Map(shown.map(each => [this.#items[each].name, this.#row(each, before, isChanged)]));
    this.#place(shown);
    if (hadFocus && !this.#hasFocus) this.#cell()?.focus({ preventScroll: true });
    this.#measure();
  }

  #row(index, before, isChanged) {
    const item = this.#items[index];
    const known = before.get(item.name);
    const row = known ?? document.createElement("tr");
    row.setAttribute("aria-rowindex", index + 2);
    if (!known || isChanged) this.#fill(row, item);
    for (const [column, cell] of [...row.cells].entries()) {
      const isActive = index === this.#active.index && column === this.#active.column;
      focusable(cell).tabIndex = isActive ? 0 : -1;
    }
    return row;
  }

  /** Puts the rows into the document, with spacers for those in between; moves as few as it can. */
  #place(shown) {
    const wanted = [];
    let next = 0, spacers = 0;
    const skip = until => {
      if (until > next) wanted.push(this.#spacer(spacers++, until - next));
    };
    for (const index of shown) {
      skip(index);
      wanted.push(this.#rows.get(this.#items[index].name));
      next = index + 1;
    }
    skip(this.#items.length);
    const kept = new Set(wanted);
    for (const child of [...this.#body.children]) if (!kept.has(child)) child.remove();
    let here = this.#body.firstChild;
    for (const child of wanted) {
      if (child === here) here = here.nextSibling;
      else this.#body.insertBefore(child, here);
    }
  }

  #spacer(place, rows) {
    const spacer = (this.#spacers[place] ??= emptyRow(this.columns));
    spacer.style.height = `${rows * this.#height}px`;
    return spacer;
  }

  /** Reads the height of a row from the style sheet, where the size of the font changes it. */
  #measure() {
    const [row] = this.#rows.values();
    const height = this.#isOnPaper ? 0 : row?.getBoundingClientRect().height;
    if (height && Math.abs(height - this.#height) > 0.01) {
      this.#height = height;
      this.#draw();
    }
  }

  #activate(index) {
    this.#active.index = Math.max(0, Math.min(index, this.#items.length - 1));
    this.#active.name = this.#items[this.#active.index]?.name ?? null;
  }

  #cell() {
    const cell = this.#rows.get(this.#active.name)?.cells[this.#active.column];
    return cell && focusable(cell);
  }

  #focused(element) {
    const row = element.closest("tr"), index = Number(row.getAttribute("aria-rowindex")) - 2;
    if (this.#items[index]?.name === this.#active.name && this.#cell() === element) return;
    this.#activate(index);
    this.#active.column = element.closest("th, td").cellIndex;
    this.#render(false);
  }

  #press(event) {
    if (event.altKey || event.metaKey || event.shiftKey) return;
    const { index, column } = this.#active, [first, last] = this.#visible();
    const page = Math.max(1, Math.floor(last - first) - 2);
    const rows = { ArrowUp: index - 1, ArrowDown: index + 1, PageUp: index - page, PageDown: index + page };
    const ends = { Home: 0, End: this.#items.length - 1 };
    const columns = { ArrowLeft: column - 1, ArrowRight: column + 1 };
    if (event.key in columns) this.#active.column = Math.max(0, Math.min(columns[event.key], this.columns - 1));
    else if (event.key in rows || event.key in ends) this.#activate(rows[event.key] ?? ends[event.key]);
    else {
      if (event.key === "Enter" && column) this.#open(this.#rows.get(this.#active.name));
      return;
    }
    event.preventDefault();
    this.#reveal();
    this.#render(false);
    this.#cell()?.focus({ preventScroll: true });
    this.#cell()?.scrollIntoView({ block: "nearest", inline: "nearest" }); // the page around the table, too
  }

  /** Scrolls until the active row is visible. */
  #reveal() {
    const above = this.#active.index * this.#height;
    const below = above + this.#height + this.#headHeight - this.#scroller.clientHeight;
    if (this.#scroller.scrollTop > above) this.#scroller.scrollTop = above;
    else if (this.#scroller.scrollTop < below) this.#scroller.scrollTop = below;
  }
}

/** What gets the focus in a cell: its link, or else the cell itself. */
function focusable(cell) {
  return cell.querySelector("a") ?? cell;
}

function emptyRow(columns) {
  const row = document.createElement("tr"), cell = document.createElement("td");
  cell.colSpan = columns;
  row.className = "spacer";
  row.setAttribute("aria-hidden", "true");
  row.append(cell);
  return row;
}
