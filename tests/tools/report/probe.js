// Added to a page by pages.py: uses it as a reader does, and says what it found.
setTimeout(() => {
  const found = {};
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = numbers(colour).map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((numbers(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };

  // Contrast, in both themes.
  found.contrast = [];
  found.texts = 0;
  for (const theme of ["light", "dark"]) {
    document.documentElement.dataset.theme = theme;
    for (const element of all("main *")) {
      const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
      if (!hasText || element.closest("details:not([open]) > :not(summary)")) continue;
      const style = getComputedStyle(element);
      const ratio = contrast(element.closest("svg") ? style.fill : style.color, behind(element));
      found.texts += 1;
      if (ratio < 4.5) found.contrast.push(`${theme} ${element.tagName}.${element.className} ${ratio.toFixed(2)}`);
    }
    const probe = document.body.appendChild(document.createElement("i"));
    for (const name of ["1", "2", "3", "4", "5", "6", "rest"]) {
      probe.style.color = `var(--series-${name})`;
      const ratio = contrast(getComputedStyle(probe).color, behind(document.body));
      if (ratio < 3) found.contrast.push(`${theme} series ${name} ${ratio.toFixed(2)}`);
    }
    probe.remove();
  }
  delete document.documentElement.dataset.theme;

  // Pictures: each is drawn, no label is cut off or on another one.
  found.charts = all("figure").map((figure) => {
    const svg = figure.querySelector("svg");
    if (!svg) return { title: figure.textContent.slice(0, 40), drawn: 0, labels: ["no picture"] };
    const frame = svg.getBoundingClientRect();
    const drawn = all(".line, .area, .dot", svg).filter((shape) => shape.getBBox().width + shape.getBBox().height > 0);
    const boxes = all("text:not(.mark)", svg).map((text) => [text.textContent, text.getBoundingClientRect()]);
    const labels = boxes.filter(([, box]) => box.left < frame.left - 1 || box.right > frame.right + 1 ||
      box.top < frame.top - 1 || box.bottom > frame.bottom + 1).map(([text]) => `cut off: ${text}`);
    if (Math.abs(svg.viewBox.baseVal.width - frame.width) > 1) labels.push("drawn for another width");
    boxes.forEach(([text, a], i) => boxes.slice(i + 1).forEach(([other, b]) => {
      if (a.left < b.right && b.left < a.right && a.top < b.bottom - 2 && b.top < a.bottom - 2)
        labels.push(`on each other: ${text}, ${other}`);
    }));
    return { title: figure.querySelector("h3").textContent, drawn: drawn.length, labels };
  });
  found.overflow = document.documentElement.scrollWidth - window.innerWidth;

  // Keyboard: the cursor of each picture, and its table.
  found.mute = all("figure").filter((figure) => {
    const svg = figure.querySelector("svg"), tip = figure.querySelector(".tip");
    const press = (key) => svg.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    svg.focus();
    const isReached = document.activeElement === svg && svg.getAttribute("aria-label").length > 10;
    press("End");
    const says = !tip.hidden && tip.textContent.length > 3 && figure.querySelector(".cursor, .chosen");
    press("Escape");
    return !(isReached && says && tip.hidden);
  }).length;
  found.unreachable = all("button, input, summary, a, svg[role=img]").filter((each) => each.tabIndex < 0).length;
  const details = document.querySelector("figure details");
  details.open = true;
  details.dispatchEvent(new Event("toggle"));
  found.values = all("tbody tr", details).length;

  // Sorting and filtering the table with most rows.
  const table = all("table").filter((each) => each.closest(".block").querySelector("input"))
    .sort((a, b) => b.querySelectorAll("th.figure").length - a.querySelectorAll("th.figure").length)[0];
  const block = table.closest(".block"), head = table.querySelector("th.figure");
  const column = all("th", table).indexOf(head);
  const first = () => all("tbody tr", table).slice(0, 2).map((row) => row.children[column].textContent);
  const button = head.querySelector("button");
  button.click();
  const largest = first(), direction = head.getAttribute("aria-sort");
  button.click();
  found.sorted = { largest, smallest: first(), directions: [direction, head.getAttribute("aria-sort")] };
  const input = block.querySelector("input"), before = table.querySelectorAll("tbody tr").length;
  const word = table.querySelector("tbody tr").children[0].textContent;
  input.value = word;
  input.dispatchEvent(new Event("input"));
  found.filtered = { word, rows: all("tbody tr", table).map((row) => row.textContent), before };
  input.value = "no row has this";
  input.dispatchEvent(new Event("input"));
  found.none = table.querySelectorAll("tbody tr").length;

  const theme = document.querySelector(".theme"), name = theme.textContent;
  theme.click();
  found.theme = [name, theme.textContent, document.documentElement.dataset.theme];

  // What a hostile name would have left behind.
  found.title = document.title;
  found.markup = all("img, iframe, main script, main a:not([href^='#'])").length;
  found.network = performance.getEntriesByType("resource").map((entry) => entry.name);
  const output = document.body.appendChild(document.createElement("pre"));
  output.id = "probe";
  output.textContent = JSON.stringify(found);
}, 1000);
