/* Lines, stacked areas and dots in a frame. A pointer or the arrow keys say
   what the values are; a table has all of them. */

const FRAME = { top: 22, right: 14, bottom: 44, height: 280 };

/** An axis of values in [low, high] that is `length` pixels long. */
class Axis {
  constructor(axis, low, high, length) {
    this.unit = axis.unit;
    this.isLog = Boolean(axis.log);
    this.length = length;
    [this.factor, this.scale] = scaleOf(axis.unit, Math.max(Math.abs(low), Math.abs(high)));
    this.title = this.scale ? `${axis.name}, ${this.scale}` : axis.name;
    this.low = low / this.factor;
    this.high = high / this.factor;
  }

  /** Widens the axis to its ticks; of `inside` only those in it are drawn. */
  addTicks(count, inside) {
    const make = this.isLog ? logTicks : roundTicks;
    this.ticks = make(this.low, this.high, count);
    if (inside || this.ticks.length === 0 || this.isLog) return;
    const step = this.ticks.length > 1 ? this.ticks[1] - this.ticks[0] : 1;
    if (this.high > this.ticks[this.ticks.length - 1] * (1 + 1e-9))
      this.high = this.ticks[this.ticks.length - 1] + step;
    if (this.low < this.ticks[0] * (1 - 1e-9)) this.low = this.ticks[0] - step;
    this.ticks = make(this.low, this.high, count + 1);
  }

  /** Pixels from the lower end. */
  at(value) {
    const scaled = value / this.factor;
    const [v, a, b] = this.isLog
      ? [Math.log10(Math.max(scaled, 1e-300)), Math.log10(this.low), Math.log10(this.high)]
      : [scaled, this.low, this.high];
    return (this.length * (v - a)) / (b - a || 1);
  }

  print(tick) {
    return Math.abs(tick) >= 1e6 || (tick !== 0 && Math.abs(tick) < 1e-4)
      ? tick.toExponential().replace("e+", "e")
      : digits(tick, 6);
  }
}

function rangeOf(values, axis) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (typeof value !== "number" || !Number.isFinite(value) || (axis.log && value <= 0)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return axis.log ? [1, 10] : [0, 1];
  if (axis.log) return [low / 1.25, high * 1.25];
  if (axis.zero) low = Math.min(low, 0);
  return low === high ? [low - (low === 0 ? 0 : Math.abs(low) / 2), high + (Math.abs(high) / 2 || 1)] : [low, high];
}

class Chart {
  constructor(block) {
    this.block = block;
    this.series = block.kind === "stack" ? this.stack(block.series) : block.series;
    this.plot = make("div", { class: "plot" });
    this.tip = make("div", { class: "tip", role: "status", hidden: "" });
    this.heights = make("p", { class: "about" }); // what they are of
    this.points = this.listPoints();
    this.chosen = -1;
  }

  colour(series) {
    return colourOf(this.block.series.findIndex((each) => each.name === series.name), series.name);
  }

  /** Each area from the top of the one before. */
  stack(series) {
    let below = series[0].y.map(() => 0);
    return series.map((each) => {
      const low = below;
      below = each.y.map((value, i) => low[i] + value);
      return { ...each, low, high: below };
    });
  }

  /** What the cursor stops at: one place of x, or one dot. */
  listPoints() {
    if (this.block.kind === "dots")
      return this.series
        .flatMap((series) => series.x.map((x, i) => ({ x, y: series.y[i], i, series })))
        .filter((point) => point.x > 0 && point.y > 0)
        .sort((a, b) => a.x - b.x);
    const places = new Set(this.series.flatMap((series) => series.x));
    return [...places].sort((a, b) => a - b).map((x) => ({ x }));
  }

  makeAxes(width) {
    const { x, y, limits = [], roof } = this.block;
    const all = (key) => this.series.flatMap((series) => series[key] || []);
    let [left, right] = rangeOf([...all("x"), ...(roof ? [roof.flops / roof.bytes] : [])], x);
    if (this.block.step) right += this.stepOf();
    const heights = [...all(this.block.kind === "stack" ? "high" : "y"), ...limits.map((each) => each.y)];
    if (this.block.kind !== "stack") heights.push(...all("low"), ...all("high"));
    const [low, high] = rangeOf([...heights, ...(roof ? [roof.flops] : [])], y);
    this.y = new Axis(y, low, high, FRAME.height - FRAME.top - FRAME.bottom);
    this.y.addTicks(5, false);
    const longest = Math.max(...this.y.ticks.map((tick) => this.y.print(tick).length), 1);
    this.left = 14 + 7 * longest;
    this.x = new Axis(x, left, right, width - this.left - FRAME.right);
    this.x.addTicks(Math.max(2, Math.floor(this.x.length / 90)), true);
  }

  stepOf() {
    const { x } = this.series[0];
    return x.length > 1 ? x[1] - x[0] : 1;
  }

  atX(value) { return this.left + this.x.at(value); }
  atY(value) { return FRAME.height - FRAME.bottom - this.y.at(value); }

  drawFrame(width) {
    const bottom = FRAME.height - FRAME.bottom, right = width - FRAME.right;
    const parts = [];
    for (const tick of this.y.ticks) {
      const at = this.atY(tick * this.y.factor);
      parts.push(draw("path", { class: "grid", d: `M${this.left} ${at}H${right}` }));
      parts.push(draw("text", { x: this.left - 6, y: at + 4, "text-anchor": "end" }, this.y.print(tick)));
    }
    for (const tick of this.x.ticks) {
      const at = this.atX(tick * this.x.factor), text = this.x.print(tick);
      const isLast = at + 3.5 * text.length > width;
      parts.push(draw("path", { class: "axis", d: `M${at} ${bottom}v4` }));
      parts.push(draw("text", { x: isLast ? width : at, y: bottom + 17,
        "text-anchor": isLast ? "end" : "middle" }, text));
    }
    parts.push(draw("path", { class: "axis", d: `M${this.left} ${bottom}H${right}` }));
    parts.push(draw("text", { x: (this.left + right) / 2, y: FRAME.height - 6, "text-anchor": "middle" }, this.x.title));
    return parts;
  }

  /** "M x y L ..." of a line, in several parts where values are missing. */
  trace(xs, ys) {
    let path = "", isDown = false;
    const step = this.block.step ? this.stepOf() : 0;
    xs.forEach((x, i) => {
      const y = ys[i];
      if (typeof y !== "number" || (this.y.isLog && y <= 0)) { isDown = false; return; }
      const at = this.atY(y).toFixed(1);
      path += `${isDown ? "L" : "M"}${this.atX(x).toFixed(1)} ${at}`;
      if (step) path += `H${this.atX(x + step).toFixed(1)}`;
      isDown = true;
    });
    return path;
  }

  /** The area between two lines of the same places. */
  traceBand(xs, lows, highs) {
    const kept = xs.map((_, i) => i).filter((i) => typeof lows[i] === "number" && typeof highs[i] === "number");
    const pick = (values) => kept.map((i) => values[i]);
    const up = this.trace(pick(xs), pick(highs));
    const down = this.trace(pick(xs), pick(lows)).slice(1).split(/[ML]/).reverse();
    const step = this.block.step;
    // A step goes back from its end to its begin.
    const back = down.map((part) => {
      const [begin, end] = part.split("H"), [x, y] = begin.split(" ");
      return step ? `L${end} ${y}H${x}` : `L${begin}`;
    });
    return up && `${up}${back.join("")}Z`;
  }

  drawSeries(series) {
    const colour = this.colour(series);
    if (this.block.kind === "stack")
      return [draw("path", { class: "area", colour, d: this.traceBand(series.x, series.low, series.high) })];
    if (this.block.kind === "dots" || series.dots)
      return series.x.map((x, i) => typeof series.y[i] === "number" && series.y[i] > (this.y.isLog ? 0 : -Infinity)
        ? draw("circle", { class: "dot", colour, cx: this.atX(x), cy: this.atY(series.y[i]), r: series.dots ? 4 : 4.5 })
        : null);
    const band = series.low
      ? draw("path", { class: "band", colour, d: this.traceBand(series.x, series.low, series.high) })
      : null;
    return [band, draw("path", { class: "line", colour, d: this.trace(series.x, series.y) })];
  }

  /** Lines of the machine: memory feeds flops up to the ridge. */
  drawRoof() {
    const { roof } = this.block;
    if (!roof) return [];
    const low = this.x.low, ridge = roof.flops / roof.bytes;
    const end = Math.max(this.x.high, ridge);
    const begin = Math.max(low, (this.y.low * this.y.factor) / roof.bytes);
    return [draw("path", { class: "roof",
      d: `M${this.atX(begin)} ${this.atY(begin * roof.bytes)}L${this.atX(ridge)} ${this.atY(roof.flops)}H${this.atX(end)}` })];
  }

  drawMarks(width) {
    const { marks = [], limits = [] } = this.block, bottom = FRAME.height - FRAME.bottom;
    const vertical = marks.flatMap((mark) => {
      const at = this.atX(mark.x), isRight = at > width * 0.6;
      return [draw("path", { class: "marker", d: `M${at} ${FRAME.top - 5}V${bottom}` }),
        draw("text", { class: "mark", x: at + (isRight ? 5 : -5), y: FRAME.top - 9,
          "text-anchor": isRight ? "end" : "start" }, mark.name)];
    });
    const level = limits.flatMap((limit) => {
      const at = this.atY(limit.y);
      return [draw("path", { class: "marker", d: `M${this.left} ${at}H${width - FRAME.right}` }),
        draw("text", { class: "mark", x: this.left + 5, y: at - 4 }, limit.name)];
    });
    return [...vertical, ...level];
  }

  /** Draws all anew for a width. */
  show(width) {
    this.makeAxes(width);
    // A title says it already where nothing is scaled.
    const isSaid = this.y.title.toLowerCase() === this.block.title.toLowerCase();
    this.heights.textContent = isSaid ? "" : this.y.title;
    this.cursor = draw("g", {});
    this.svg = draw("svg", { viewBox: `0 0 ${width} ${FRAME.height}`, height: FRAME.height, tabindex: 0,
      role: "img", "aria-label": this.describe() },
      ...this.drawFrame(width), ...this.series.flatMap((each) => this.drawSeries(each)),
      ...this.drawRoof(), ...this.drawMarks(width), this.cursor);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.choose(-1));
    this.svg.addEventListener("blur", () => this.choose(-1));
    this.svg.addEventListener("keydown", (event) => this.move(event));
    const hadFocus = this.plot.contains(document.activeElement);
    this.plot.replaceChildren(this.svg, this.tip);
    if (hadFocus) this.svg.focus();
  }

  describe() {
    const { title, x, y } = this.block;
    return `${title}: ${y.name} over ${x.name}. Arrow keys say the values, and a table below has them.`;
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    let nearest = -1, least = Infinity;
    this.points.forEach((point, i) => {
      const across = this.atX(point.x) - x;
      const distance = point.series ? Math.hypot(across, this.atY(point.y) - y) : Math.abs(across);
      if (distance < least) [nearest, least] = [i, distance];
    });
    this.choose(nearest);
  }

  move(event) {
    const last = this.points.length - 1, at = this.chosen;
    const places = { ArrowRight: Math.min(last, at + 1), ArrowLeft: Math.max(0, at - 1), Home: 0, End: last, Escape: -1 };
    if (!(event.key in places)) return;
    event.preventDefault();
    this.choose(places[event.key]);
  }

  /** Says what is at a point; -1: nothing. */
  choose(index) {
    this.chosen = index;
    this.tip.hidden = index < 0;
    this.cursor.replaceChildren();
    if (index < 0) return;
    const point = this.points[index], x = this.atX(point.x);
    this.cursor.append(point.series
      ? draw("circle", { class: "chosen", cx: x, cy: this.atY(point.y), r: 7 })
      : draw("path", { class: "cursor", d: `M${x} ${FRAME.top}V${FRAME.height - FRAME.bottom}` }));
    this.tip.replaceChildren(...(point.series ? this.sayDot(point) : this.sayPlace(point)));
    const width = this.plot.clientWidth, own = this.tip.offsetWidth;
    const left = x + 12 + own > width ? Math.max(0, x - own - 12) : x + 12;
    this.tip.style.transform = `translate(${left}px, ${FRAME.top}px)`;
  }

  sayDot({ series, i }) {
    const { x, y } = this.block;
    return [make("b", {}, series.labels ? series.labels[i] : series.name),
      make("div", {}, make("span", {}, x.name), make("span", {}, format(series.x[i], x.unit))),
      make("div", {}, make("span", {}, y.name), make("span", {}, format(series.y[i], y.unit)))];
  }

  sayPlace({ x }) {
    const rows = this.series.map((series) => {
      const i = series.x.indexOf(x);
      if (i < 0 || series.y[i] === null) return null;
      const value = format(series.y[i], this.block.y.unit);
      const isBand = series.low && this.block.kind === "lines" && series.low[i] !== series.high[i];
      const band = isBand ? ` (${format(series.low[i], this.block.y.unit)} to ${format(series.high[i], this.block.y.unit)})` : "";
      return make("div", {}, make("span", {}, makeSwatch(this.colour(series)), series.name), make("span", {}, value + band));
    });
    if (this.block.kind === "stack") rows.reverse();
    const total = this.block.kind === "stack" && this.series.length > 1
      ? make("div", {}, make("span", {}, "all"), make("span", {}, format(this.totalAt(x), this.block.y.unit))) : null;
    return [make("b", {}, `${this.block.x.name} ${format(x, this.block.x.unit)}`), ...rows.filter(Boolean), total].filter(Boolean);
  }

  totalAt(x) {
    const top = this.series[this.series.length - 1];
    return top.high[top.x.indexOf(x)];
  }

  makeLegend() {
    if (this.series.length < 2) return null;
    return make("ul", { class: "legend" }, ...this.series.map((series) =>
      make("li", {}, makeSwatch(this.colour(series)), series.name)));
  }

  /** The same numbers, made when they are asked for. */
  makeValues() {
    const { x, y, kind } = this.block;
    const isDots = kind === "dots";
    const details = make("details", {}, make("summary", {}, "Values as a table"));
    details.addEventListener("toggle", () => {
      if (details.childElementCount > 1) return;
      const columns = isDots ? [{ name: "name" }, x, y]
        : [x, ...this.series.map((series) => ({ name: series.name, unit: y.unit }))];
      const rows = isDots
        ? this.points.map(({ series, i }) => [series.labels ? series.labels[i] : series.name, series.x[i], series.y[i]])
        : this.points.map((point) => [point.x, ...this.series.map((series) => {
          const i = series.x.indexOf(point.x);
          return i < 0 ? null : series.y[i];
        })]);
      details.append(new Table({ columns, rows }).make());
    }, { once: false });
    return details;
  }

  make() {
    const { title, about } = this.block;
    let last = 0;
    // What is drawn within the observer's call would have it called again.
    const show = () => {
      const width = this.plot.clientWidth;
      if (width > 0 && width !== last) this.show((last = width));
    };
    new ResizeObserver(() => requestAnimationFrame(show)).observe(this.plot);
    return make("figure", { class: "block" }, make("h3", {}, title),
      about ? make("p", { class: "about" }, about) : null, this.makeLegend(),
      this.heights, this.plot, this.makeValues());
  }
}
