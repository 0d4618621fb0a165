/* Numbers as text, and the round numbers of axes. */

const SCALES = {
  bytes: [[1, "B"], [2 ** 10, "KiB"], [2 ** 20, "MiB"], [2 ** 30, "GiB"], [2 ** 40, "TiB"]],
  seconds: [[1e-9, "ns"], [1e-6, "µs"], [1e-3, "ms"], [1, "s"], [60, "min"], [3600, "h"]],
  flops: [[1, "flop"], [1e3, "kflop"], [1e6, "Mflop"], [1e9, "Gflop"], [1e12, "Tflop"]],
  "flops/s": [[1e6, "Mflop/s"], [1e9, "Gflop/s"], [1e12, "Tflop/s"]],
  "bytes/s": [[1e6, "MB/s"], [1e9, "GB/s"], [1e12, "TB/s"]],
  share: [[0.01, "%"]],
};

/** The largest scale of `unit` that `value` is at least 1 of: [factor, name]. */
function scaleOf(unit, value) {
  const scales = SCALES[unit];
  if (!scales) return [1, ""];
  const fitting = scales.filter(([factor]) => Math.abs(value) >= factor * 0.9995);
  return fitting.length ? fitting[fitting.length - 1] : scales[0];
}

/** So many digits, without zeros behind the point. */
function digits(value, count) {
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size >= 15 || size < -4) return value.toExponential(count - 1).replace(/\.?0+e/, "e");
  const places = Math.max(0, count - 1 - size);
  return value.toLocaleString("en-US", { maximumFractionDigits: Math.min(places, 12) });
}

/** A value of a unit for people; texts are what they are. */
function format(value, unit) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (value === 0) return unit === "share" ? "0 %" : "0";
  if (unit === "count") return value.toLocaleString("en-US", { maximumFractionDigits: 1 });
  if (unit === "share") return formatShare(value);
  const [factor, name] = scaleOf(unit, value);
  const text = digits(value / factor, unit === "number" || !unit ? 4 : 3);
  return name ? `${text} ${name}` : text;
}

function formatShare(value) {
  const percent = 100 * value;
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  return `${digits(percent, percent >= 100 ? 4 : percent >= 10 ? 3 : 2)} %`;
}

/** Multiples of 1, 2 or 5 times a power of ten: about `count` of them that
    lie within [low, high]. */
function roundTicks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((each) => each * power >= rough * 0.999) * power;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i)
    ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

/** Powers of ten, every few where they are many; 1, 2 and 5 of each where
    they are few. */
function logTicks(low, high, count) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const decades = Math.log10(high / low);
  const every = Math.max(1, Math.ceil(decades / Math.max(count, 1)));
  const factors = decades * 3 <= count + 1 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let power = first; power <= last; power += every)
    for (const factor of factors) ticks.push(Number(`${factor}e${power}`));
  return ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
}
