// Numbers with units, as people read them: three digits, SI prefixes, and a space that does not break.

const GAP = "\u00a0";
export const NONE = "–";

const PREFIXES = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 || value === 0 ? 0 : size >= 9.995 ? 1 : size >= 0.01 ? 2 : 3);
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** 1234 and "B" give "1.23 kB". */
export function si(value, unit = "") {
  if (!isNumber(value)) return NONE;
  const [size, prefix] = PREFIXES.find(([limit]) => Math.abs(value) >= limit * 0.9995) ?? [1, ""];
  const text = size === 1 && Number.isInteger(value) ? String(value) : digits(value / size);
  return prefix || unit ? `${text}${GAP}${prefix}${unit}` : text;
}

export const bytes = (value) => si(value, "B");
export const byteRate = (value) => si(value, "B/s");

export function plain(value) {
  if (!isNumber(value)) return NONE;
  if (value !== 0 && (Math.abs(value) < 0.001 || Math.abs(value) >= 1e6)) return value.toExponential(2);
  return Number.isInteger(value) ? value.toLocaleString("en-US") : String(Number(value.toPrecision(4)));
}

export const whole = (value) => (isNumber(value) ? Math.round(value).toLocaleString("en-US") : NONE);
export const percent = (fraction) => (isNumber(fraction) ? `${(100 * fraction).toFixed(fraction < 0.0995 ? 1 : 0)}${GAP}%` : NONE);

/** Seconds as the two largest units. */
export function duration(seconds) {
  if (!isNumber(seconds)) return NONE;
  if (seconds < 1) return seconds >= 0.001 ? `${digits(seconds * 1e3)}${GAP}ms` : `${digits(seconds * 1e6)}${GAP}µs`;
  if (seconds < 10) return `${seconds.toFixed(1)}${GAP}s`;
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const rest = Math.round(seconds);
  const first = units.findIndex(([size]) => rest >= size);
  const [size, name] = units[first];
  const [next, nextName] = units[first + 1] ?? [0, ""];
  const more = next ? Math.floor((rest % size) / next) : 0;
  return `${Math.floor(rest / size)}${GAP}${name}${more ? ` ${more}${GAP}${nextName}` : ""}`;
}

/** How long ago something was, without parts of a second: it is read, not measured. */
export const age = (seconds) => (seconds < 1 ? `0${GAP}s` : duration(Math.round(seconds)));

export const dateTime = (unix) => (isNumber(unix) ? new Date(unix * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }) : NONE);
export const clock = (unix) => new Date(unix * 1000).toLocaleTimeString(undefined, { hour12: false });

/** worker/1 as it is written in paths. */
export const inPath = (label) => encodeURIComponent(label.replace("/", "-"));
