// The approvals page. All that comes from the server is put into the page as
// text, never as markup.
"use strict";

const $ = (id) => document.getElementById(id);
const conversations = new Map(); // id -> {view, node, list, entries}
const questions = new Map(); // id -> {id, view, thread, node, …}, the cards under "To decide"
let token = sessionStorage.getItem("token");
let selected = null; // the card that keys act on
let settledAt = 0; // when what can be pressed last moved

// el makes an element; children are elements or text.
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((c) => c !== false && c !== undefined && c !== ""));
  return node;
}

// scrolls has the attributes of a part that the keyboard scrolls, with its name for a screen reader.
const scrolls = (name) => ({ tabindex: "0", role: "group", "aria-label": name });

const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
const count = (n, one, many) => n.toLocaleString("en") + " " + (n === 1 ? one : many);
const firstLine = (s) => s.trim().split("\n", 1)[0];
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
  $("desk").hidden = $("keys-button").hidden = false;
  for (let wait = 250; ; wait = Math.min(wait * 2, 4000)) {
    const began = Date.now();
    if ((await listen()) === "over") return;
    if (Date.now() - began > 5000) wait = 250;
    show("off", "Not reachable, trying again…");
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

// shut removes everything from the page and says why.
function shut(why) {
  sessionStorage.removeItem("token");
  token = null;
  for (const q of [...questions.values()]) discard(q);
  conversations.clear();
  $("conversations").replaceChildren();
  showTasks([]);
  $("desk").hidden = $("keys-button").hidden = true;
  $("door").hidden = false;
  $("door-why").textContent = why;
  document.title = "Approvals · codex-mcp";
  show("off", "Not connected");
  return "over";
}

function show(state, words) {
  if (state !== $("link").dataset.state) settledAt = performance.now();
  $("link").dataset.state = state;
  $("link").textContent = words;
  for (const q of questions.values()) lock(q);
  for (const c of conversations.values()) c.stop.disabled = state !== "live";
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
  $("link").append(el("button", { class: "quiet", type: "button", onclick: () => location.reload() }, "Use this one"));
  return "over";
}

// update shows one line of the stream. The first one holds everything.
function update(news, first) {
  const known = new Set();
  for (const view of news.conversations) {
    const c = conversations.get(view.id) || newConversation(view);
    const atEnd = c.node.open && c.list.scrollHeight - c.list.scrollTop - c.list.clientHeight < 40;
    c.view = view;
    for (const e of view.entries) {
      if (e.question && first) known.add(e.id);
      c.later.set(e.id, e);
      if (e.question) showQuestion(c, e, first);
    }
    if (c.node.open) showLater(c);
    for (const [id, node] of c.entries) {
      if (id >= view.from || (questions.has(id) && isOpen(questions.get(id)))) continue;
      node.remove();
      c.entries.delete(id);
    }
    for (const id of c.later.keys()) if (id < view.from) c.later.delete(id);
    head(c);
    if (atEnd) c.list.scrollTop = c.list.scrollHeight;
  }
  for (const id of conversations.keys()) {
    if (news.order.includes(id)) continue;
    conversations.get(id).node.remove();
    conversations.delete(id);
  }
  for (const q of [...questions.values()]) {
    if (first && isOpen(q) && !known.has(q.id)) discard(q); // of a server before
  }
  order(news.order, first);
  tally();
  if (news.tasks || first) showTasks(news.tasks || []);
}

// showTasks lists what other processes do.
function showTasks(tasks) {
  $("tasks").replaceChildren(...tasks.map((t) => el("li", { "data-status": t.status },
    el("span", { class: "state" }, t.status.replace("_", " ")),
    el("span", { class: "said" }, t.message),
    el("span", { class: "facts" }, [clock(t.began), t.server, t.thread].join(" · ")))));
  $("elsewhere").hidden = tasks.length === 0;
}

function order(ids, first) {
  let at = $("conversations").firstElementChild;
  ids.forEach((id, i) => {
    const c = conversations.get(id);
    if (!c) return;
    if (first && i === 0) c.node.open = true;
    if (c.node === at) at = at.nextElementSibling;
    else $("conversations").insertBefore(c.node, at);
  });
  $("silence").hidden = ids.length > 0;
}

// ---- questions

const isOpen = (q) => q.view.state === "open";
const open = () => [...questions.values()].filter(isOpen);

function showQuestion(c, e, first) {
  let q = questions.get(e.id);
  if (!q) {
    if (e.question.state !== "open") return;
    q = newCard(c, e);
    questions.set(e.id, q);
    $("questions").append(q.node);
    near.observe(q.node);
    settledAt = performance.now();
    if (!first) $("news").textContent = "New question: " + title(q.view) + " " + short(asked(q.view));
    if (!selected) select(q);
  }
  q.view = e.question;
  settle(q);
}

// near marks the cards that have reached the upper half of the screen. On a phone only these keep
// Deny and Stop in sight: under a question that is still to be read they would cover what it is about.
const near = new IntersectionObserver((cards) => cards.forEach((c) => c.target.classList.toggle("near", c.isIntersecting)), { rootMargin: "0px 0px -50%" });

// settle shows how a question ended.
function settle(q) {
  lock(q);
  if (isOpen(q) || q.sending) return;
  if (q.mine && q.view.by === "page") {
    $("news").textContent = outcome(q.view) + ".";
    leave(q);
    return;
  }
  if (q.view.state === "answered" && q.mine) return; // the decision is on its way
  q.node.classList.add("settled");
  q.outcome.replaceChildren(outcome(q.view) + ".", el("button", { class: "quiet", type: "button", onclick: () => leave(q) }, "Dismiss"));
  q.outcome.hidden = false;
  settledAt = performance.now();
  tally();
}

// leave removes a card and selects the next one.
function leave(q) {
  const cards = [...questions.values()];
  const later = cards.slice(cards.indexOf(q) + 1).concat(cards).find((other) => other !== q && isOpen(other));
  const focused = q.node.contains(document.activeElement) || document.activeElement === document.body;
  discard(q);
  if (!selected && later) select(later);
  if (focused) (later ? later.node : $("questions-title")).focus({ preventScroll: !later });
  tally();
}

function discard(q) {
  near.unobserve(q.node);
  q.node.remove();
  questions.delete(q.id);
  if (selected === q) selected = null;
  settledAt = performance.now();
}

function lock(q) {
  q.fields.disabled = !isOpen(q) || q.sending || !live();
}

function tally() {
  const n = open().length;
  document.title = (n ? `(${n}) ` : "") + "Approvals · codex-mcp";
  $("questions-title").textContent = n ? count(n, "question", "questions") + " to decide" : "To decide";
  $("nothing").hidden = questions.size > 0 || !live();
  if (!selected && n) select(open()[0]);
}

function select(q) {
  if (selected === q) return;
  if (selected) selected.node.classList.remove("selected");
  selected = q;
  q.since = performance.now();
  q.node.classList.add("selected");
}

const title = (v) => ({ exec: "Run this command?", patch: "Change " + count(v.files ? v.files.length : 0, "file", "files") + "?" })[v.kind] || "Allow this?";

// outcome says in words how a question ended.
function outcome(v) {
  if (v.state === "answered") return "Answered on another page";
  if (v.state === "withdrawn") return "No longer asked";
  const by = { page: " on the page", client: " in the client", terminal: " at the terminal", rule: " by your rules" }[v.by] || "";
  switch (v.reason) {
    case "timeout": return "Not done: no answer in time";
    case "interrupted": return "Not done: the turn was ended";
    case "unsupported": case "client_error": return v.decision.startsWith("approved") ? "Approved without asking, as it is harmless" : "Not done: the client could not ask";
    case "peer_gone": return "Not done: the client is gone";
    case "not_understood": return "Not done: the answer" + by + " was not understood";
  }
  switch (v.decision) {
    case "approved": return "Approved once" + by;
    case "approved_always": return "Always allowed" + by + ": " + v.rule;
    case "approved_for_session": return "Approved for the session" + by;
    case "abort": return "Denied, and the turn stopped," + by;
  }
  return "Denied" + by + (v.feedback ? ": “" + v.feedback + "”" : "");
}

// asked names what a question is about.
const asked = (v) => v.command || (v.files || []).map((f) => f.path).join(", ") || v.message || v.facts || "this";

// newCard makes the card of an open question. Nothing in it is cut.
function newCard(c, e) {
  const v = e.question;
  const q = { id: e.id, view: v, thread: c.view.id, since: performance.now() };
  const id = "question-" + e.id;
  const button = (key, words, kind, act, meaning) =>
    el("button", { type: "button", class: kind, title: meaning, onclick: () => act(q) }, words, el("kbd", { "aria-hidden": "true" }, key));
  q.word = el("input", { id: id + "-word", type: "text", maxlength: 2000, autocomplete: "off", placeholder: "A note to the agent (optional)" });
  q.fields = el("fieldset", { class: "actions" },
    el("legend", { class: "unseen" }, "Your decision on " + short(asked(v))), // two cards may have the same heading
    el("div", { class: "row" },
      button("y", "Approve once", "yes", (q) => decide(q, { action: "accept" })),
      v.session && button("a", "Approve for the session" + (v.inside ? ", in the sandbox" : ""), "yes also", (q) => decide(q, { action: "accept", content: { decision: "approved_for_session" } }),
        "Approve the same again without a question until the session ends")),
    v.always && el("div", { class: "row always" },
      button("w", "Always allow", "yes also", always, "Run this in the sandbox, and keep the rule for later questions"),
      el("p", { id: id + "-rule" }, v.always.words)),
    el("form", { class: "row", onsubmit: (event) => { event.preventDefault(); deny(q); } },
      el("label", { class: "unseen", for: id + "-word" }, "A note to the agent, optional"),
      q.word,
      el("button", { type: "submit", class: "no", title: "The agent gets your note and tries something else" }, "Deny", el("kbd", { "aria-hidden": "true" }, "n")),
      button("s", "Stop the turn", "no", stopTurn, "Deny, and end the turn of the agent")));
  q.outcome = el("p", { class: "outcome", hidden: true });
  q.node = el("article", { class: "card ask", tabindex: "-1", "aria-labelledby": id, onfocusin: () => select(q) },
    el("header", {},
      el("h3", { id }, title(v)), el("span", { class: "time" }, clock(e.at)),
      el("p", { class: "asks" }, el("bdi", {}, short(v.subject)), c.view.task && ", working on “", el("bdi", {}, short(c.view.task)), c.view.task && "”")),
    ...details(v),
    q.fields,
    q.outcome);
  return q;
}

// details shows what a question is about.
function details(v) {
  const parts = [];
  if (v.kind === "other") parts.push(el("p", { class: "message" }, v.message));
  if (v.facts) parts.push(box(el("pre", { class: "command", ...scrolls("What it is about") }, v.facts)));
  if (v.command) {
    parts.push(box(el("pre", { class: "command", ...scrolls("The command") }, v.command)));
    if (v.script) parts.push(el("details", { open: true }, el("summary", {}, "The same, line by line"), box(el("pre", { class: "command script", ...scrolls("The command, line by line") }, v.script))));
    if (v.hidden) parts.push(el("p", { class: "warning" }, "It has invisible characters. They are written as \\x… and \\u{…} here."));
  }
  if (v.files) parts.push(...v.files.map(showFile));
  if (v.cwd) parts.push(el("p", { class: "where" }, v.kind === "patch" ? "The folder is " : "in ", el("code", {}, v.cwd)));
  if (v.reach) parts.push(el("p", { class: "reach" }, el("strong", { class: "outside" }, "no sandbox"), " ", v.reach));
  for (const note of v.notes || []) parts.push(el("p", { class: "warning" }, note));
  if (v.reason) parts.push(el("blockquote", {}, el("cite", {}, "The model’s reason"), box(el("p", scrolls("The model’s reason"), v.reason))));
  if (v.covers) parts.push(el("p", { class: "where covers" }, v.covers));
  if (v.deadline) parts.push(el("p", { class: "where deadline" }, "Refused at " + clock(v.deadline) + " unless you answer."));
  return parts;
}

// box adds the size of the content to a part that has to be scrolled.
function box(node) {
  const text = node.textContent, lines = text.replace(/\n$/, "").split("\n").length;
  const size = count(text.length, "character", "characters") + (lines > 1 ? " in " + count(lines, "line", "lines") : "");
  const note = el("p", { class: "size", hidden: true }, "Scroll to see all of it: " + size + ".");
  new ResizeObserver(() => { note.hidden = node.scrollHeight <= node.clientHeight + 1; }).observe(node);
  return el("div", { class: "box" }, node, note);
}

function showFile(f) {
  const kind = { add: "New file", delete: "Deleted file" }[f.kind] || (f.moveTo ? "Moved file" : "Changed file");
  return el("details", { class: "file", open: true },
    el("summary", {},
      el("span", { class: "kind " + f.kind }, kind), " ", el("code", {}, f.path), f.moveTo ? " → " : "", f.moveTo && el("code", {}, f.moveTo),
      el("span", { class: "counts" }, el("span", { class: "plus" }, "+" + f.added), " ", el("span", { class: "minus" }, "−" + f.removed)),
      f.outside && el("strong", { class: "outside" }, "outside the folder")),
    f.diff && box(diff(f.diff, "The changes of " + f.path, /^@@/)), // it has no other headings
    f.cut && el("p", { class: "size" }, "The rest is not kept."));
}

// diff colours lines by their sign, and headings. Lines of one colour are one element, and
// the last ones of very many have no colour, so that a long patch does not slow the page.
function diff(text, name, heading = /^(diff |index |--- |\+\+\+ |@@)/) {
  const runs = [];
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const kind = runs.length > 5000 ? "" : heading.test(line) ? "hunk" : { "+": "plus", "-": "minus" }[line[0]] || "";
    if (runs.length && runs.at(-1).kind === kind) runs.at(-1).lines.push(line);
    else runs.push({ kind, lines: [line] });
  }
  return el("pre", { class: "diff", ...scrolls(name) }, ...runs.map((r) => el("span", { class: r.kind }, r.lines.join("\n") + "\n")));
}

// ---- deciding

const deny = (q) => {
  const feedback = q.word.value.trim();
  decide(q, feedback ? { action: "decline", content: { feedback } } : { action: "decline" });
};
const always = (q) => decide(q, { action: "accept", content: { decision: "approved_always" } });
// Not {"action":"cancel"}, which says that no choice was made, and need not stop the turn.
const stopTurn = (q) => decide(q, { action: "accept", content: { decision: "abort" } });

async function decide(q, result) {
  if (!isOpen(q) || q.sending) return toast("This question is answered.");
  if (!live()) return toast("Not connected: nothing was sent.");
  if (result.action !== "decline" && performance.now() - Math.max(settledAt, q.since) < 500) {
    return toast("The page had just changed, so nothing was sent. Please press again.");
  }
  q.sending = true;
  lock(q);
  let words = "";
  try {
    const r = await post("/questions/" + q.id, result);
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
function toast(words) {
  $("toast").textContent = words;
  $("toast").hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { $("toast").hidden = true; }, 6000);
}

// The keys of a question are those of the terminal.
const keys = {
  j: () => step(1),
  k: () => step(-1),
  y: (q) => decide(q, { action: "accept" }),
  a: (q) => q.view.session ? decide(q, { action: "accept", content: { decision: "approved_for_session" } }) : toast("This one can only be approved once."),
  w: (q) => q.view.always ? always(q) : toast("There is no rule to accept for this one."),
  n: deny,
  d: (q) => q.word.focus(),
  s: stopTurn,
  "?": () => $("keys").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.matches("input")) return event.target.closest(".ask").focus();
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !token) return;
  if (event.target.closest("input, textarea, select, [contenteditable], dialog")) return;
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  if (act.length === 0) return act();
  if (!selected) return;
  if (!visible(selected)) {
    reveal(selected);
    return toast("Here is the question. Press again to answer it.");
  }
  if (event.key !== "d" && !isOpen(selected)) return toast("This question is answered. Press j for the next.");
  act(selected);
});

function step(by) {
  const cards = [...questions.values()];
  if (!cards.length) return;
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
  const top = q.node.getBoundingClientRect().top;
  const asked = q.node.querySelector("pre, .message, .file") || q.node;
  return top >= -1 && asked.getBoundingClientRect().top + 24 <= innerHeight;
}

// ---- conversations

function newConversation(view) {
  const c = { view, entries: new Map(), later: new Map() }; // later: what is shown once it is unfolded
  c.title = el("span", { class: "task" });
  c.state = el("span", { class: "state" });
  c.facts = el("p", { class: "facts" });
  c.list = el("ol", { class: "timeline", tabindex: "0" });
  c.stop = el("button", { type: "button", class: "no", onclick: () => stopConversation(c) }, "Stop the turn");
  c.node = el("details", { class: "card conversation" },
    el("summary", {}, c.title, c.state),
    el("div", { class: "bar" }, c.facts, c.stop),
    c.list);
  c.node.addEventListener("toggle", () => unfold(c));
  conversations.set(view.id, c);
  return c;
}

function showLater(c) {
  for (const e of c.later.values()) showEntry(c, e);
  c.later.clear();
}

function unfold(c) {
  if (!c.node.open) return;
  showLater(c);
  c.list.scrollTop = c.list.scrollHeight;
}

function head(c) {
  if (c.view.state === "running" && !c.ran) {
    c.ran = c.node.open = true;
    unfold(c);
  }
  c.title.textContent = short(c.view.task) || "Conversation";
  const asks = open().some((q) => q.thread === c.view.id);
  c.state.textContent = asks ? "waits for you" : { running: "working", closed: "closed" }[c.view.state] || "idle";
  c.state.dataset.state = asks ? "asking" : c.view.state;
  c.stop.hidden = c.view.state !== "running";
  c.facts.textContent = [clock(c.view.began), c.view.model, c.view.id].filter(Boolean).join(" · ");
  c.list.setAttribute("aria-label", "What happened: " + c.title.textContent);
  c.stop.setAttribute("aria-label", "Stop the turn: " + c.title.textContent);
}

async function stopConversation(c) {
  const r = await post("/conversations/" + encodeURIComponent(c.view.id) + "/stop", {}).catch(() => null);
  if (!r || !r.ok) toast(r ? await r.text() : "The server could not be reached.");
}

const who = { user: "You", agent: "Agent", reasoning: "Thinking", command: "Command", patch: "Files", tool: "Tool", plan: "Plan", diff: "Diff", note: "", error: "Error", end: "", question: "Question" };

// showEntry updates one entry. It keeps existing parts, so that what is folded, scrolled or
// selected stays so.
function showEntry(c, e) {
  let node = c.entries.get(e.id);
  if (!node) {
    node = el("li", { class: "entry is-" + e.kind }, el("span", { class: "who" }, who[e.kind] || ""), el("div", { class: "what" }));
    c.entries.set(e.id, node);
    c.list.append(node);
  }
  const what = node.lastElementChild;
  const part = (tag, kind) => {
    let p = what.querySelector("." + kind);
    if (!p) what.append(p = el(tag, { class: kind }));
    return p;
  };
  const folded = (kind, words, text, make) => {
    const box = part("details", kind);
    if (!box.firstChild) box.append(el("summary", {}));
    grow(box.firstChild, words);
    if (box.shown === text) return box;
    box.shown = text;
    if (make || !box.lastElementChild.matches("pre")) {
      while (box.children.length > 1) box.lastElementChild.remove();
      box.append(make ? make(text) : el("pre", scrolls(who[e.kind]), text));
    } else {
      grow(box.lastElementChild, text);
    }
    return box;
  };
  const cut = e.cut ? ` (${count(e.cut, "byte", "bytes")} left out)` : "";
  switch (e.kind) {
    case "reasoning":
      folded("thoughts", firstLine(e.text || "").replace(/\*\*/g, "") || "…", e.text || "");
      break;
    case "command":
    case "tool":
      grow(part("code", "title"), e.title);
      part("code", "title").classList.toggle("long", e.title.length > 300);
      grow(part("span", "result"), e.running ? "running…" : result(e));
      part("span", "result").dataset.good = e.running ? "" : String(e.exit === 0);
      if (e.text) {
        const lines = count(e.text.replace(/\n$/, "").split("\n").length, "line", "lines");
        const fresh = !what.querySelector(".output");
        const box = folded("output", (e.kind === "tool" ? "Arguments and result, " : "Output, ") + lines + cut, e.text);
        if (fresh && e.kind === "command") box.open = true;
        box.lastElementChild.scrollTop = box.lastElementChild.scrollHeight;
      }
      break;
    case "patch":
      if (!what.querySelector(".file")) what.append(...(e.files || []).map((f) => { const d = showFile(f); d.open = false; return d; }));
      grow(part("span", "result"), e.running ? "applying…" : e.exit === 0 ? "applied" : "not applied");
      part("span", "result").dataset.good = e.running ? "" : String(e.exit === 0);
      if (e.text) grow(part("p", "said"), e.text);
      break;
    case "plan": {
      const list = part("ul", "steps");
      list.replaceChildren(...(e.steps || []).map((s) => el("li", { "data-status": s.status },
        el("span", { class: "unseen" }, { completed: "done: ", in_progress: "now: " }[s.status] || "to do: "), s.step)));
      if (e.text) grow(part("p", "said"), e.text);
      break;
    }
    case "diff":
      folded("whole", "All changes of this turn" + cut, e.text || "", (text) => diff(text, "All changes of this turn"));
      break;
    case "question": {
      const v = e.question;
      grow(part("code", "title"), short(asked(v)));
      grow(part("span", "result"), v.state === "open" ? "open, see above" : outcome(v));
      part("span", "result").dataset.good = v.state === "decided" ? String(v.decision.startsWith("approved")) : "";
      break;
    }
    default:
      grow(part("p", "said"), (e.text || "") + cut);
  }
}

function result(e) {
  if (e.exit === undefined) return "no result";
  const took = e.took ? " · " + (e.took < 1000 ? e.took + " ms" : (e.took / 1000).toFixed(1) + " s") : "";
  return (e.kind === "tool" ? (e.exit === 0 ? "done" : "failed") : "exit " + e.exit) + took;
}

// grow sets an element's text. If the old text is the beginning of the new one, it only
// appends the rest.
function grow(node, text) {
  const old = node.firstChild;
  if (old && text.startsWith(old.data)) {
    if (text.length > old.data.length) old.appendData(text.slice(old.data.length));
  } else {
    node.textContent = text;
  }
}

$("keys-button").addEventListener("click", () => $("keys").showModal());
addEventListener("hashchange", () => { if (location.hash) location.reload(); }); // a fresh link in this very tab
start();
