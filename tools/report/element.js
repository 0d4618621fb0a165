/* Elements. What comes from a model is text, never markup. */

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  return fill(element, attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return fill(element, attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes))
    if (name === "colour") element.style.setProperty("--colour", value);
    else if (value !== undefined && value !== null) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A path that breaks behind its dots and slashes. */
function breakPath(text) {
  return text.split(/(?<=[./,])/).flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part]));
}

/** The colour of the series with that number; the rest shares one. */
function colourOf(index, name) {
  const isRest = index >= 6 || name === "the rest";
  return isRest ? "var(--series-rest)" : `var(--series-${index + 1})`;
}

function makeSwatch(colour) {
  return make("span", { class: "swatch", colour, "aria-hidden": "true" });
}
