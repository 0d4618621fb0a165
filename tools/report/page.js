/* The page: a summary, then sections of blocks. Document.h says what each
   block has. */

function makeFacts(facts) {
  return make("dl", { class: "facts" }, ...facts.map((fact) =>
    make("div", {}, make("dt", {}, fact.name),
      make("dd", {}, format(fact.value, fact.unit),
        fact.note ? make("span", { class: "note" }, fact.note) : null))));
}

function makeNote(block) {
  return make("p", { class: "block" }, block.text);
}

/** Parts of a whole, as one bar and as a list. */
function makeParts(block) {
  const all = block.whole || block.parts.reduce((sum, part) => sum + part.value, 0);
  const share = (part) => (all > 0 ? part.value / all : 0);
  const parts = block.parts.map((part, i) => ({ ...part, colour: colourOf(i, part.name) }));
  const bar = make("div", { class: "parts", "aria-hidden": "true" }, ...parts.map((part) => {
    const span = make("span", { colour: part.colour, title: `${part.name}: ${format(part.value, block.unit)}` });
    span.style.flex = `0 0 ${100 * share(part)}%`;
    return span;
  }));
  const list = make("ul", { class: "shares" }, ...parts.map((part) =>
    make("li", {}, makeSwatch(part.colour), make("span", { class: "name" }, part.name),
      block.unit === "share" ? null : make("span", { class: "value" }, format(part.value, block.unit)),
      make("span", { class: "share" }, format(share(part), "share")))));
  return make("div", { class: "block" }, make("h3", {}, block.title),
    block.about ? make("p", { class: "about" }, block.about) : null, bar, list);
}

const MAKERS = {
  note: makeNote,
  facts: (block) => make("div", { class: "block" }, block.title ? make("h3", {}, block.title) : null, makeFacts(block.facts)),
  parts: makeParts,
  table: (block) => new Table(block).make(),
  chart: (block) => new Chart(block).make(),
};

function makeVerdict(verdict) {
  return make("div", { class: `verdict ${verdict.state}` }, make("strong", {}, verdict.text),
    ...verdict.lines.map(({ label, text }) =>
      make("p", {}, label ? make("span", { class: "label" }, `${label}: `) : null, text)));
}

function makeTheme() {
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const button = make("button", { type: "button", class: "theme" });
  const name = () => { button.textContent = isDark() ? "Light page" : "Dark page"; };
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); });
  name();
  return button;
}

function makeSection(section, index) {
  return make("section", { id: `section-${index}`, "aria-label": section.title }, make("h2", {}, section.title),
    make("p", { class: "learn" }, section.learn), ...section.blocks.map((block) => MAKERS[block.type](block)));
}

function showPage(page) {
  document.title = page.title;
  const links = page.sections.map((section, i) =>
    make("li", {}, make("a", { href: `#section-${i}` }, section.title)));
  document.body.append(make("main", { class: "sheet" },
    make("header", {},
      make("div", { class: "top" },
        make("div", {}, make("h1", {}, page.title), make("p", {}, page.subtitle)), makeTheme()),
      makeVerdict(page.verdict), makeFacts(page.facts),
      make("nav", { "aria-label": "sections" }, make("ul", {}, ...links))),
    ...page.sections.map(makeSection)));
}

showPage(JSON.parse(document.getElementById("data").textContent));
