// Arithmetic of charts: ticks, thinning, quantiles. No elements here.

/** Round numbers that cover a range, about `count` of them. */
export function ticks(low, high, count = 4) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999);
  const result = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) result.push(Number((i * step).toPrecision(12)));
  return result;
}

/** Steps of time that people count in. */
export function timeTicks(seconds, count = 5) {
  const steps = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200];
  const step = steps.find((n) => seconds / n <= count) ?? 86_400;
  const result = [];
  for (let t = 0; t <= seconds; t += step) result.push(t);
  return result;
}

const isNumber = (value) => value !== null && value !== undefined && Number.isFinite(value);

/** The smallest and the largest of several series; null if there is no number. */
export function range(lists) {
  let low = Infinity;
  let high = -Infinity;
  for (const values of lists) {
    for (const value of values) {
      if (!isNumber(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : null;
}

/** Where each of at most `most` pieces of `length` points begins: [[first, end], ...]. */
export function pieces(length, most) {
  const count = Math.min(length, most);
  return Array.from({ length: count }, (_, i) => [Math.floor((i * length) / count), Math.floor(((i + 1) * length) / count)]);
}

/** The mean of each piece; null where it has no number. */
export function thinned(values, parts) {
  return parts.map(([first, end]) => {
    let sum = 0;
    let count = 0;
    for (let i = first; i < end; i++) {
      if (isNumber(values[i])) {
        sum += values[i];
        count++;
      }
    }
    return count ? sum / count : null;
  });
}

/** Least, lower quartile, median, upper quartile and largest of many series, in each piece. */
export function bands(lists, parts) {
  const thin = lists.map((values) => thinned(values, parts));
  return parts.map((_, i) => {
    const here = thin.map((values) => values[i]).filter((value) => value !== null).sort((a, b) => a - b);
    if (!here.length) return null;
    const at = (q) => here[Math.round(q * (here.length - 1))];
    return [here[0], at(0.25), at(0.5), at(0.75), here.at(-1)];
  });
}

export function median(values) {
  const sorted = values.filter(isNumber).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(sorted.length / 2)] : null;
}
