// Asking the page's server. Every failure becomes an ApiError with a sentence to show.

export class ApiError extends Error {
  /** `kind`: "away" (no answer), "denied" (the key), "refused" (the server says why). */
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

const DENIED = "The key of this page is missing or no longer valid.";

async function answerOf(response) {
  if (response.ok) return response;
  if (response.status === 401) throw new ApiError("denied", DENIED);
  let message = `The server of the page answered with status ${response.status}.`;
  try {
    message = (await response.json()).error ?? message;
  } catch {
    // Not JSON: the status has to do.
  }
  throw new ApiError("refused", message);
}

async function request(path, options, seconds) {
  let response;
  try {
    response = await fetch(path, { ...options, signal: AbortSignal.timeout(seconds * 1000) });
  } catch (error) {
    const isLate = error.name === "TimeoutError";
    throw new ApiError("away", isLate ? `No answer within ${seconds} s.` : "The server of the page does not answer.");
  }
  return answerOf(response);
}

/** GET, as JSON. */
export async function get(path, seconds = 10) {
  return (await request(`api/${path}`, {}, seconds)).json();
}

/** POST with options, as JSON. */
export async function post(path, body = {}, seconds = 30) {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return (await request(`api/${path}`, options, seconds)).json();
}

/** Offers a file that was made here. */
export function download(name, text, type = "application/json") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
