// Runs before the first paint, so that a chosen theme does not flash. A classic script: modules run later.
try {
  const chosen = localStorage.getItem("tensorfleet-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Without storage the system's theme holds.
}
