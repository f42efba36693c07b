// The approvals page. All that comes from the server is put into the page as
// text, never as markup.
"use strict";

const $ = (id) => document.getElementById(id);
const conversations = new Map(); // id -> {view, node, …}
const questions = new Map(); // id -> {id, view, node, …}, the cards under "To decide"
let token = sessionStorage.getItem("token");
let selected = null; // the card that keys act on
let settledAt = 0; // when what can be pressed last moved
let moment = 4000; // how long a card stays with what was decided elsewhere, in ms

// el makes an element; children are elements or text.
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((c) => c));
  return node;
}

// scrolls has the attributes of a part that the keyboard scrolls, with its name for a screen reader.
const scrolls = (name, kind) => ({ class: kind, tabindex: "0", role: "group", "aria-label": name });
const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
const count = (n, one) => n.toLocaleString("en") + " " + one + (n === 1 ? "" : "s");
const short = (s) => (s.length > 160 ? s.slice(0, 159) + "…" : s); // for what is not decided on

// ---- the connection

function post(path, body) {
  return fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(token && { Authorization: "Bearer " + token }) },
    body: JSON.stringify(body),
  });
}

async function start() {
  if (document.prerendering) await new Promise((resolve) => document.addEventListener("prerenderingchange", resolve, { once: true }));
  const secret = location.hash.slice(1);
  if (secret) {
    history.replaceState(null, "", location.pathname);
    const r = await post("/session", { secret }).catch(() => null);
    if (r && r.ok) {
      token = (await r.json()).token;
      sessionStorage.setItem("token", token);
    } else if (!token) {
      return shut(r ? "This link was used already, or is too old." : "The server does not answer.");
    }
  }
  if (!token) return shut("It was opened without a link.");
  $("desk").hidden = false;
  for (let wait = 250; ; wait = Math.min(wait * 2, 4000)) {
    const began = Date.now();
    if ((await listen()) === "over") return;
    if (live() && Date.now() - began > 5000) wait = 250;
    if (wait > 1000) show("off", gone); // it tries on, and says so no more
    else show("off", "Connecting…");
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

const gone = "codex-mcp has ended, or cannot be reached: what was not decided was not done; when it runs again, open the page by a new link.";

// shut removes everything from the page and says why. With a title of its own there is no more to say.
function shut(why, title) {
  sessionStorage.removeItem("token");
  token = null;
  for (const q of [...questions.values()]) discard(q);
  conversations.clear();
  $("conversations").replaceChildren();
  $("desk").hidden = true;
  $("door").hidden = false;
  $("door-why").textContent = why;
  if (title) $("door-title").textContent = title;
  for (const p of $("door").querySelectorAll("#door-why ~ p")) p.hidden = Boolean(title);
  show("off", "");
  return "over";
}

function show(state, words) {
  if (state !== $("link").dataset.state) settledAt = performance.now();
  $("link").dataset.state = state;
  if ($("link").textContent !== words) $("link").textContent = words;
  for (const q of questions.values()) lock(q);
  tally();
}
const live = () => $("link").dataset.state === "live";

// listen reads one stream to its end. It returns "over" when there is to be no other.
async function listen() {
  const abort = new AbortController();
  let watchdog;
  const alive = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => abort.abort(), 40000); // the server is never silent for more than 15 s
  };
  try {
    alive();
    const r = await fetch("/events", { headers: { Authorization: "Bearer " + token }, signal: abort.signal, cache: "no-store" });
    if (r.status === 401) return shut("Your access has ended: codex-mcp was started again, or the page was not used for long.");
    if (!r.ok) return "again";
    const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "", first = true;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return "again";
      alive();
      const lines = value.split("\n"); // not rest as well, which may be long
      lines[0] = rest + lines[0];
      rest = lines.pop();
      for (const line of lines) {
        if (!line) continue;
        const news = JSON.parse(line);
        if (news.end === "session") return shut("Your access has ended.");
        if (news.end === "closed") return shut("What was not decided was not done; when it runs again, open the page by a new link.", "codex-mcp has ended");
        if (news.end) return elsewhere();
        try {
          update(news, first);
        } catch (fault) {
          reportError(fault); // and continue: what can be shown is
        }
        if (first) show("live", "Live");
        first = false;
      }
    }
  } catch {
    return "again";
  } finally {
    clearTimeout(watchdog);
    abort.abort();
  }
}

// elsewhere replaces the page in the oldest of too many tabs.
function elsewhere() {
  show("off", "Open in newer tabs. ");
  $("link").append(el("button", { type: "button", onclick: () => location.reload() }, "Use this one"));
  return "over";
}

// update shows one line of the stream. The first one holds everything.
function update(news, first) {
  for (const view of news.conversations.toReversed()) showConversation(view); // the newest is above
  for (const [id, c] of conversations) {
    if (news.order.includes(id)) continue;
    c.node.remove();
    conversations.delete(id);
  }
  $("silence").hidden = news.order.length > 0;
  for (const q of news.questions) showQuestion(q, first);
  if (first) { // what else is open is of a server before
    const known = new Set(news.questions.map((q) => q.id));
    for (const q of [...questions.values()]) if (isOpen(q) && !known.has(q.id)) discard(q);
  }
  tally();
}

// ---- questions

const isOpen = (q) => q.view.state === "open";
const open = () => [...questions.values()].filter(isOpen);

function showQuestion(e, first) {
  let q = questions.get(e.id);
  if (!q) {
    if (e.question.state !== "open") return;
    q = newCard(e);
    questions.set(e.id, q);
    $("questions").append(q.node);
    settledAt = performance.now();
    if (!first) $("news").textContent = "New question: " + title(q.view) + " " + short(about(q.view));
    if (!selected) select(q);
  }
  q.view = { ...q.view, ...e.question };
  settle(q);
}

// settle shows how a question ended.
function settle(q) {
  lock(q);
  if (isOpen(q) || q.sending) return;
  if (q.mine && q.view.by === "page") {
    toast(outcome({ ...q.view, feedback: "" }) + ": " + short(about(q.view)), moment);
    return leave(q);
  }
  if (q.view.state === "answered" && q.mine) return; // the decision is on its way
  const stays = q.view.state !== "decided" || undone(q.view) || !places[q.view.by];
  q.node.classList.add("settled");
  q.fields.remove();
  q.outcome.replaceChildren(el("p", { class: "outcome" }, outcome(q.view) + "."), ...(stays ? [el("button", { type: "button", onclick: () => leave(q) }, "Dismiss")] : []));
  if (!stays) setTimeout(() => leave(q), moment);
  settledAt = performance.now();
  tally();
}

// leave removes a card and selects the next one.
function leave(q) {
  if (questions.get(q.id) !== q) return;
  const cards = [...questions.values()];
  const later = cards.slice(cards.indexOf(q) + 1).concat(cards).find((other) => other !== q && isOpen(other));
  const focused = q.node.contains(document.activeElement) || (document.activeElement === document.body && selected === q); // no other card loses the mark
  discard(q);
  if (!selected && later) select(later);
  if (focused) (later ? later.node : $("questions-title")).focus({ preventScroll: !later });
  tally();
}

function discard(q) {
  q.node.remove();
  questions.delete(q.id);
  if (selected === q) selected = null;
  settledAt = performance.now();
}

function lock(q) {
  q.fields.disabled = !isOpen(q) || q.sending || !live();
}

function tally() {
  const n = live() ? open().length : 0;
  document.title = (n ? `(${n}) ` : "") + "Approvals · codex-mcp";
  $("questions-title").textContent = n ? count(n, "question") + " to decide" : "To decide";
  $("nothing").hidden = questions.size > 0 || !live();
  if (!selected && n) select(open()[0]);
  for (const c of conversations.values()) head(c);
}

function select(q) {
  if (selected === q) return;
  if (selected) selected.node.classList.remove("selected");
  selected = q;
  q.since = performance.now();
  q.node.classList.add("selected");
}

const title = (v) => ({ exec: "Run this command?", patch: "Change " + count((v.files || []).length, "file") + "?" })[v.kind] || "Allow this?";

const places = { page: " on the page", client: " in the client", terminal: " in the terminal" }; // where a person decides
const undone = (v) => ({
  timeout: "no answer in time", interrupted: "the turn was ended", unsupported: "the client could not ask", client_error: "the client could not ask",
  peer_gone: "the client is gone", not_understood: "the answer" + (places[v.by] || "") + " was not understood",
})[v.reason];

// outcome says in words how a question ended.
function outcome(v) {
  if (v.state === "answered") return "Answered on another page";
  if (v.state === "withdrawn") return "No longer asked";
  if (undone(v)) return "Not done: " + undone(v);
  const by = places[v.by] || (v.by === "rule" ? " by your rules" : "");
  const done = {
    approved: "Approved once" + by, approved_always: "Always allowed" + by + ": " + v.rule, approved_for_session: "Approved for the session" + by,
    abort: "Denied, and the turn stopped," + by,
  }[v.decision];
  return done || "Denied" + by + (v.feedback ? ": “" + v.feedback + "”" : "");
}

// about names what a question is about.
const about = (v) => v.command || (v.files || []).map((f) => f.path).join(", ") || v.message || v.facts || "this";

// newCard makes the card of an open question. Nothing in it is cut.
function newCard(e) {
  const v = e.question, id = "question-" + e.id, task = conversations.get(e.conversation)?.view.task;
  const q = { id: e.id, view: v, conversation: e.conversation, since: performance.now() };
  const button = (key, words, kind, act) => el("button", { type: "button", class: kind, onclick: () => act(q) }, words, el("kbd", { "aria-hidden": "true" }, key));
  q.word = el("input", { type: "text", maxlength: 2000, autocomplete: "off", placeholder: "A note to the agent (optional)", "aria-label": "A note to the agent, optional" });
  q.fields = el("fieldset", { class: "actions" },
    el("legend", { class: "unseen" }, "Your decision on " + short(about(v))), // two cards may have the same heading
    el("div", { class: "row" },
      button("y", "Approve once", "yes", keys.y),
      v.session && button("a", "Approve for the session" + (v.inside ? ", in the sandbox" : ""), "also", keys.a)),
    v.always && el("div", { class: "row always" }, button("w", "Always allow", "also", keys.w), el("p", {}, v.always)),
    el("form", { class: "row", onsubmit: (event) => { event.preventDefault(); keys.n(q); } },
      q.word,
      el("button", { type: "submit", class: "no" }, "Deny", el("kbd", { "aria-hidden": "true" }, "n")),
      button("s", "Stop the turn", "no", keys.s)),
    v.tip && el("p", { class: "dim" }, v.tip));
  q.outcome = el("div", { class: "row" });
  q.node = el("article", { class: "card ask", tabindex: "-1", "aria-labelledby": id, onfocusin: () => select(q) },
    el("h3", { id }, title(v)),
    el("p", { class: "dim" }, clock(e.at) + " · ", el("bdi", {}, short(v.subject)), task && ", working on “", task && el("bdi", {}, short(task)), task && "”"),
    ...details(v), q.fields, q.outcome);
  return q;
}

// details shows what a question is about.
function details(v) {
  return [
    v.message && el("p", { class: "message" }, v.message),
    v.facts && box(el("pre", scrolls("What it is about", "command"), v.facts)),
    v.command && box(el("pre", scrolls("The command", "command"), v.command)),
    v.script && el("p", { class: "dim" }, "with this script:"),
    v.script && box(el("pre", scrolls("The script", "command script"), v.script)),
    v.hidden && el("p", { class: "warning" }, "It has invisible characters. They are written as \\x… and \\u{…} here."),
    ...(v.files || []).map(showFile),
    v.cwd && el("p", { class: "dim" }, v.kind === "patch" ? "The folder is " : "in ", el("code", {}, v.cwd)),
    v.reach && el("p", { class: "reach" }, v.reach),
    ...(v.notes || []).map((note) => el("p", { class: "warning" }, note)),
    v.reason && el("blockquote", {}, el("cite", {}, "The model’s reason"), el("p", scrolls("The model’s reason"), v.reason)),
    (v.covers || v.deadline) && el("p", { class: "dim" }, v.covers, " ", v.deadline && el("span", { class: "deadline" }, "Refused at " + clock(v.deadline) + " unless you answer.")),
  ].filter((part) => part);
}

// box adds the size of the content to a part that has to be scrolled.
function box(node) {
  const text = node.textContent;
  const note = el("p", { class: "dim size", hidden: true }, "Scroll to see all of it: " + count(text.length, "character") + " in " + count(text.replace(/\n$/, "").split("\n").length, "line") + ".");
  new ResizeObserver(() => { note.hidden = node.scrollHeight <= node.clientHeight + 1; }).observe(node);
  return el("div", {}, node, note);
}

function showFile(f) {
  const kind = { add: "New file ", delete: "Deleted file " }[f.kind] || (f.moveTo ? "Moved file " : f.replaces ? "Replaced file " : "Changed file ");
  const runs = []; // lines of one colour are one element, and the last ones of very many have no colour
  for (const line of (f.diff || "").replace(/\n$/, "").split("\n")) {
    const sign = runs.length > 5000 ? "" : { "+": "plus", "-": "minus", "@": "hunk" }[line[0]] || "";
    if (runs.length && runs.at(-1).sign === sign) runs.at(-1).lines.push(line);
    else runs.push({ sign, lines: [line] });
  }
  return el("details", { class: "file", open: true },
    el("summary", {},
      el("span", { class: "kind" }, kind), el("code", {}, f.path), f.moveTo && " → ", f.moveTo && el("code", {}, f.moveTo),
      f.moveTo && f.replaces && el("strong", { class: "outside" }, " replaces what is there"),
      el("span", { class: "counts" }, ` +${f.added} −${f.removed} `), f.outside && el("strong", { class: "outside" }, "outside the folder"), " ",
      f.why && el("strong", { class: "outside" }, f.why)),
    f.diff && box(el("pre", scrolls("The changes of " + f.path, "diff"), ...runs.map((r) => el("span", { class: r.sign }, r.lines.join("\n") + "\n")))));
}

// ---- deciding

async function decide(q, action, content) {
  if (!isOpen(q) || q.sending) return toast("This question is answered.");
  if (!live()) return toast("Not connected: nothing was sent.");
  if (action !== "decline" && performance.now() - Math.max(settledAt, q.since) < 500) {
    return toast("The page had just changed, so nothing was sent. Please press again.");
  }
  q.sending = true;
  lock(q);
  let words = "";
  try {
    const r = await post("/questions/" + q.id, content ? { action, content } : { action });
    q.mine = r.status === 204;
    if (r.status === 409) words = outcome(await r.json()) + ": your answer came second.";
    else if (r.status === 401) shut("Your access has ended.");
    else if (!r.ok) words = await r.text();
  } catch {
    words = "The server could not be reached: the answer may not have arrived.";
  }
  q.sending = false;
  if (words) toast(words);
  settle(q);
  if (isOpen(q)) q.node.focus({ preventScroll: true });
}

let toastTimer;
function toast(words, ms = 6000) {
  $("toast").textContent = words;
  $("toast").hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { $("toast").hidden = true; }, ms);
}

// keys act on the selected question, as the letters of codex-mcp ask do; j and k select another.
const keys = {
  y: (q) => decide(q, "accept"),
  a: (q) => q.view.session ? decide(q, "accept", { decision: "approved_for_session" }) : toast("This one can only be approved once."),
  w: (q) => q.view.always ? decide(q, "accept", { decision: "approved_always" }) : toast("There is no rule to accept for this one."),
  n: (q) => decide(q, "decline", q.word.value.trim() ? { feedback: q.word.value.trim() } : undefined),
  s: (q) => decide(q, "accept", { decision: "abort" }), // not "cancel", which says that no choice was made
  j: () => step(1),
  k: () => step(-1),
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.matches("input")) return event.target.closest(".ask").focus();
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !token || event.target.closest("input")) return;
  const act = keys[event.key];
  if (!act || !selected) return;
  event.preventDefault();
  if (act.length === 0) return act();
  if (!visible(selected)) {
    reveal(selected);
    return toast("Here is the question. Press again to answer it.");
  }
  act(selected);
});

function step(by) {
  const cards = [...questions.values()];
  const next = cards[Math.max(0, Math.min(cards.length - 1, cards.indexOf(selected) + by))];
  select(next);
  reveal(next);
}

function reveal(q) {
  q.since = performance.now();
  q.node.focus({ preventScroll: true });
  q.node.scrollIntoView({ block: "start" });
}

// visible reports whether the heading and the beginning of what is asked are on the screen.
function visible(q) {
  const begins = q.node.querySelector("pre, .message, .file") || q.node;
  return q.node.getBoundingClientRect().top >= -1 && begins.getBoundingClientRect().top + 24 <= innerHeight;
}

// ---- conversations

function showConversation(view) {
  let c = conversations.get(view.id);
  if (!c) {
    c = { task: el("span", { class: "task" }), state: el("span", { class: "dim now" }), note: el("p", { class: "warning" }) };
    c.log = el("pre", scrolls("The last lines", "log"));
    c.stop = el("button", { type: "button", class: "no", onclick: () => stop(view.id) }, "Stop the turn");
    c.node = el("details", { class: "card" }, el("summary", {}, c.task, " ", c.state), c.note, c.log, el("div", { class: "row" }, c.stop));
    conversations.set(view.id, c);
    $("conversations").prepend(c.node);
  }
  if (view.state === "running" && c.view?.state !== "running") c.node.open = true;
  c.view = view;
  const atEnd = c.log.scrollHeight - c.log.scrollTop - c.log.clientHeight < 40;
  if (c.shown !== view.log) c.log.replaceChildren(...lines(view.log));
  c.shown = view.log;
  if (atEnd) c.log.scrollTop = c.log.scrollHeight;
  c.task.textContent = short(view.task) || "Conversation";
  c.note.textContent = view.note || "";
  c.note.hidden = !view.note;
  c.stop.setAttribute("aria-label", "Stop the turn: " + c.task.textContent);
}

// head shows what a conversation does now. Nobody knows it without the server. A question has its own button to stop the turn.
function head(c) {
  const asks = open().some((q) => q.conversation === c.view.id), running = c.view.state === "running" && live();
  c.state.textContent = !live() ? "" : running ? c.view.now || (asks ? "waits for you" : "working") : c.view.state || "idle";
  c.stop.hidden = !running || asks;
}

// lines returns a log in blocks, so that a long line that goes on does not look like the heading of an entry.
function lines(log) {
  const blocks = [];
  for (const line of log.replace(/\n$/, "").split("\n")) {
    const kind = line.startsWith("  ") ? "said" : line.startsWith("│ ") ? "printed" : "entry";
    const last = blocks.at(-1);
    if (last?.kind === kind && kind !== "entry") last.lines.push(line);
    else blocks.push({ kind, lines: [line] });
  }
  return blocks.map((b) => el("span", { class: b.kind }, b.lines.map((line) => line.slice(b.kind === "entry" ? 0 : 2)).join("\n") + "\n"));
}

async function stop(id) {
  const r = await post("/conversations/" + encodeURIComponent(id) + "/stop", {}).catch(() => null);
  if (!r || !r.ok) toast(r ? await r.text() : "The server could not be reached.");
}

addEventListener("hashchange", () => { if (location.hash) location.reload(); }); // a fresh link in this very tab
start();
