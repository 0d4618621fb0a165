/* Tables that sort and filter. */

const ROWS_AT_FIRST = 12;

function isFigure(column) {
  return Boolean(column.unit) && column.unit !== "text";
}

/** Numbers before texts, nothing last. */
function compareCells(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "number" || typeof b === "number") return typeof a === "number" ? -1 : 1;
  return a.localeCompare(b, "en", { numeric: true });
}

class Table {
  constructor(block) {
    this.block = block;
    this.rows = block.rows;
    this.isWhole = block.rows.length <= ROWS_AT_FIRST + 3;
    this.sorted = { column: -1, descending: false };
    // A meter is full at the largest value of its column.
    this.most = block.columns.map((column, i) => column.meter
      ? Math.max(...block.rows.map((row) => (typeof row[i] === "number" ? row[i] : 0)), 1e-12) : 1);
    this.texts = block.rows.map((row) =>
      row.map((cell, i) => format(cell, block.columns[i].unit)).join("\n").toLowerCase());
    this.order = block.rows.map((_, i) => i);
    this.body = make("tbody", { role: "rowgroup" });
    this.heads = block.columns.map((column, i) => this.makeHead(column, i));
    this.status = make("span", { role: "status" });
    this.all = make("button", { type: "button" });
    this.all.addEventListener("click", () => { this.isWhole = !this.isWhole; this.show(); });
  }

  makeHead(column, index) {
    const button = make("button", { type: "button" }, column.name);
    button.addEventListener("click", () => this.sort(index));
    const kind = isFigure(column) ? "figure" : "";
    return make("th", { class: kind, scope: "col", role: "columnheader" }, button);
  }

  /** Figures begin with the largest, texts with the first. */
  sort(column) {
    const isAgain = this.sorted.column === column;
    const descending = isAgain ? !this.sorted.descending : isFigure(this.block.columns[column]);
    this.sorted = { column, descending };
    const cell = (i) => this.rows[i][column];
    this.order.sort((a, b) => {
      const isNothing = cell(a) === null || cell(b) === null;
      const order = compareCells(cell(a), cell(b));
      return (descending && !isNothing ? -order : order) || a - b;
    });
    this.heads.forEach((head, i) => {
      head.removeAttribute("aria-sort");
      if (i === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    });
    this.show();
  }

  makeCell(value, index) {
    const column = this.block.columns[index];
    const text = format(value, column.unit);
    const cell = make("td", { class: isFigure(column) ? "figure" : "", role: "cell",
      "data-name": column.name });
    if (column.meter && typeof value === "number") {
      const meter = make("span", { class: "meter", "aria-hidden": "true" }, make("i"));
      meter.style.setProperty("--share", `${(100 * value) / this.most[index]}%`);
      cell.append(make("span", {}, meter, make("span", { class: "metered" }, text)));
    } else cell.append(...breakPath(text));
    return cell;
  }

  show() {
    const words = (this.filter ? this.filter.value : "").toLowerCase().split(/\s+/);
    const found = this.order.filter((i) => words.every((word) => this.texts[i].includes(word)));
    const shown = this.isWhole ? found : found.slice(0, ROWS_AT_FIRST);
    const marked = new Set(this.block.marked || []);
    this.body.replaceChildren(...shown.map((i) =>
      make("tr", { role: "row", class: marked.has(i) ? "marked" : null },
        ...this.rows[i].map((cell, k) => this.makeCell(cell, k)))));
    const isShort = shown.length < found.length;
    this.status.textContent =
      isShort || found.length < this.rows.length
        ? `${shown.length} of ${found.length === this.rows.length ? "" : `${found.length} found of `}${this.rows.length} rows`
        : "";
    this.all.hidden = !isShort && !(this.isWhole && found.length > ROWS_AT_FIRST + 3);
    this.all.textContent = isShort ? `Show all ${found.length}` : "Show fewer";
  }

  make() {
    const { title, columns, rows, about } = this.block;
    const tools = make("div", { class: "tools" }, title ? make("h3", {}, title) : make("span"));
    if (rows.length > 5) {
      this.filter = make("input", { type: "search", placeholder: "any words" });
      this.filter.addEventListener("input", () => this.show());
      tools.append(make("label", {}, "Filter", this.filter));
    }
    const table = make("table", { role: "table", "aria-label": title || "values" },
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...this.heads)), this.body);
    this.show();
    if (columns.length === 0 || rows.length === 0)
      return make("div", { class: "block" }, make("h3", {}, title),
        make("p", { class: "nothing" }, this.block.nothing || "None."));
    return make("div", { class: "block" }, tools,
      about ? make("p", { class: "about" }, about) : null, table,
      make("div", { class: "more" }, this.all, this.status));
  }
}
