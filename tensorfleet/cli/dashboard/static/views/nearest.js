// Names near to one that does not exist.

function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(next[j - 1] + 1, row[j] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length];
}

/** The names that are most like what was typed. */
export function nearest(typed, names, count = 3) {
  const wanted = typed.toLowerCase().slice(0, 60);
  const scored = [...new Set(names)].slice(0, 3000).map((name) => [distance(wanted, name.toLowerCase().slice(0, 60)), name]);
  return scored.sort((a, b) => a[0] - b[0]).slice(0, count).map(([, name]) => name);
}
