// The page's behaviour. Given by Gradio: element, trigger, props, server, upload, watch.
// Text of others arrives as HTML that the server has escaped, or is put in as textContent; nothing is evaluated.
const WORDS = props.words;
const MODEL = props.model;
const EXAMPLES = props.examples;
const LIMIT = props.limit;
const $ = (id) => document.getElementById(id);
const root = document.documentElement;
const memory = {
  get(name) { try { return localStorage.getItem("whycrash-" + name); } catch { return null; } },
  set(name, value) { try { localStorage.setItem("whycrash-" + name, value); } catch { /* a browser that keeps nothing */ } },
};

let language = memory.get("language") || ((navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en");
let files = [];
let shown = {};
const IDLE = { state: "idle", triage: "", job: "", headline: "", patch: null, command: null, markdown: "" };
let state = { ...IDLE };
// Whether this page itself waits for an answer, and whether its server was lost meanwhile.
let working = false;
let lost = false;
let jumps = {};
// Which of its questions the page is about; answers to an earlier one come late and are not shown.
let ticket = 0;

function say(name, values) {
  const text = (WORDS[name] || [name, name])[language === "zh" ? 1 : 0];
  return values ? text.replace(/\{(\w+)\}/g, (_, key) => String(values[key])) : text;
}

// ---- language and theme

function speak() {
  root.lang = language === "zh" ? "zh-CN" : "en";
  for (const part of element.querySelectorAll("[data-t]")) part.textContent = say(part.dataset.t);
  for (const part of element.querySelectorAll("[data-placeholder]")) part.placeholder = say(part.dataset.placeholder);
  for (const part of element.querySelectorAll("[data-label]")) {
    part.setAttribute("aria-label", say(part.dataset.label));
    if (part.tagName === "BUTTON") part.title = say(part.dataset.label);
  }
  element.querySelector('[data-do="language"]').lang = language === "zh" ? "en" : "zh-CN";
  $("wc-where").textContent = MODEL ? say("goes", { model: MODEL }) : say("stays");
  $("wc-use-model").hidden = !MODEL;
  $("wc-use-model").querySelector("span").textContent = say("ask-model", { model: MODEL });
  const cards = EXAMPLES.map((name) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "example";
    button.dataset.do = "example";
    button.dataset.example = name;
    button.textContent = say("example-" + name);
    return button;
  });
  $("wc-examples").replaceChildren(...cards);
  drawFiles();
}

const dark = matchMedia("(prefers-color-scheme: dark)");
function paintTheme() {
  const wanted = memory.get("theme");
  const isDark = wanted ? wanted === "dark" : dark.matches;
  document.body.classList.toggle("dark", isDark);
  root.style.colorScheme = isDark ? "dark" : "light";
}
dark.addEventListener("change", () => setTimeout(paintTheme));
// Gradio paints the body by the system's theme a moment after the page is there.
new MutationObserver(() => {
  const wanted = memory.get("theme");
  if (wanted && document.body.classList.contains("dark") !== (wanted === "dark")) paintTheme();
}).observe(document.body, { attributes: true, attributeFilter: ["class"] });

// ---- files

function size(count) { return count < 1e3 ? count + " B" : count < 1e6 ? (count / 1e3).toFixed(1) + " kB" : (count / 1e6).toFixed(1) + " MB"; }

function drawFiles() {
  const rows = files.map((file, place) => {
    const row = document.createElement("li");
    row.className = "tag";
    const name = document.createElement("span");
    name.textContent = file.name + " · " + size(file.size);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "bare";
    button.textContent = "×";
    button.setAttribute("aria-label", say("remove-file", { name: file.name }));
    button.addEventListener("click", () => { files.splice(place, 1); drawFiles(); $("wc-text").focus(); });
    row.append(name, button);
    return row;
  });
  $("wc-files").replaceChildren(...rows);
  offerBatch();
}

function addFiles(list) {
  files.push(...list);
  drawFiles();
  complain("");
}

let depth = 0;
const hasFiles = (event) => [...(event.dataTransfer?.types || [])].includes("Files");
document.addEventListener("dragenter", (event) => { if (hasFiles(event)) { depth++; $("wc-dropping").hidden = false; event.preventDefault(); } });
document.addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
document.addEventListener("dragleave", (event) => { if (hasFiles(event) && --depth <= 0) { depth = 0; $("wc-dropping").hidden = true; } });
document.addEventListener("drop", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  event.stopPropagation();
  depth = 0;
  $("wc-dropping").hidden = true;
  if (!$("wc-answer").hidden) startOver();
  addFiles(event.dataTransfer.files);
}, true);

// ---- asking

function complain(text) { $("wc-complaint").textContent = text; }

async function sent(list) {
  const made = [];
  const large = list.find((file) => file.size > LIMIT * 2 ** 20);
  if (large) throw new Error(say("too-large", { name: large.name, limit: LIMIT }));
  for (const file of list) {
    announce(say("uploading", { name: file.name }));
    $("wc-complaint").textContent = "";
    try {
      made.push({ place: (await upload(file)).path, name: file.name });
    } catch (error) {
      throw new Error(say("upload-failed", { name: file.name, why: String(error?.message || error) }));
    }
  }
  return made;
}

// A long paste is taken as a file: laying out a text area of a megabyte stops the browser for a second.
const LONG = 400_000;

async function explain() {
  const text = $("wc-text").value;
  if (!text.trim() && !files.length) { complain(say("empty")); $("wc-text").focus(); return; }
  const isLong = text.length > LONG;
  const list = isLong ? [...files, new File([text], "pasted.log")] : files;
  const button = $("wc-form").querySelector('[type="submit"]');
  button.disabled = true;
  try {
    begin({ text: isLong ? "" : text, files: await sent(list) });
  } catch (error) {
    complain(error.message);
  } finally {
    button.disabled = false;
  }
}

function begin(asked) {
  working = true;
  jumps = {};
  state = { ...IDLE, state: "waiting" };
  showAnswer(true);
  apply({ state: "waiting", triage: "", panels: {} });
  trigger("explain", { ticket: ++ticket, text: "", files: [], example: "", live: $("wc-live").checked, model: !MODEL || $("wc-model").checked, language, ...asked });
}

function ask() {
  const question = $("wc-question").value.trim();
  if (!question || working || !state.triage) return;
  working = true;
  $("wc-question").value = "";
  trigger("ask", { ticket: ++ticket, triage: state.triage, question, language });
}

// The page is one of three things: what is asked for, an answer, a batch.
function showPart(name) {
  for (const part of ["wc-form", "wc-answer", "wc-batch"]) $(part).hidden = part !== name;
  if (name !== "wc-batch") batch = "";
  element.querySelector(".wc").classList.toggle("answered", name !== "wc-form");
  if (name !== "wc-form") scrollTo(0, 0);
}

function showAnswer(is) { showPart(is ? "wc-answer" : "wc-form"); }

function startOver() {
  working = false;
  ticket++;
  state = { ...IDLE };
  history.pushState({}, "", location.pathname);
  document.title = "whycrash";
  showAnswer(false);
  $("wc-text").value = "";
  files = [];
  drawFiles();
  $("wc-text").focus();
}

function open(triage, push) {
  if (push) history.pushState({}, "", "?triage=" + encodeURIComponent(triage));
  working = false;
  jumps = {};
  state = { ...IDLE };
  showAnswer(true);
  look(triage);
}

function look(triage) { trigger("look", { ticket: ++ticket, triage, language }); }

// ---- what the server says

function apply(next) {
  const before = state;
  state = { ...state, ...next };
  for (const [name, html] of Object.entries(next.panels || {})) {
    if (shown[name] !== html) place(name, html);
  }
  if (!Object.keys(next.panels || {}).length) {
    for (const panel of element.querySelectorAll("[data-panel]")) panel.replaceChildren();
    shown = {};
  }
  const isOver = state.state === "done" || state.state === "failed";
  if (working && isOver && !state.asking) working = false;
  $("wc-follow").hidden = state.state !== "done" || !state.triage;
  if (state.triage && state.triage !== before.triage) {
    const isHere = new URLSearchParams(location.search).get("triage") === state.triage;
    history.replaceState({}, "", "?triage=" + encodeURIComponent(state.triage) + (isHere ? location.hash : ""));
  }
  if (state.headline && state.headline !== before.headline) {
    document.title = state.headline + " · whycrash";
    announce(state.headline);
    // Where the input was, nothing has the focus any more.
    if (working && !before.headline && (document.activeElement === document.body || $("wc-form").contains(document.activeElement))) $("wc-headline")?.focus({ preventScroll: true });
  }
  // The log is kept a moment after the first answer stands; a model would let it wait for longer.
  if (state.state === "running" && state.headline && !before.headline) setTimeout(() => showLog(state.triage), 400);
  if (isOver && !(before.state === "done" || before.state === "failed")) past();
  if (before.asking && !state.asking) $("wc-talk").querySelector("li:last-child")?.scrollIntoView({ block: "nearest" });
  const mine = ticket;
  if (state.elsewhere) setTimeout(() => { if (ticket === mine) look(state.triage); }, 2500);
}

function place(name, html) {
  const panel = element.querySelector(`[data-panel="${name}"]`);
  const opened = new Map([...panel.querySelectorAll("details[data-key]")].map((part) => [part.dataset.key, part.open]));
  panel.innerHTML = html;
  shown[name] = html;
  for (const part of panel.querySelectorAll("details[data-key]")) if (opened.has(part.dataset.key)) part.open = opened.get(part.dataset.key);
  if (name === "evidence") {
    // Where nothing failed, the end of the log is what tells.
    const last = [...panel.querySelectorAll(".l")].pop();
    centre(panel.querySelector('.l[data-role="root"]') || panel.querySelector(".l[data-role]") || last, false);
    if (sought) seekLine();
  }
  if (name === "talk" && html && working) panel.scrollIntoView({ block: "end" });
}

async function showLog(triage) {
  try {
    const { html } = await server.log({ triage, language });
    if (html && state.triage === triage && state.state === "running") place("evidence", html);
  } catch { /* the quoted lines stay */ }
}

function announce(text) { $("wc-live-region").textContent = text; }

let fading = 0;
function toast(text) {
  $("wc-toast").textContent = text;
  $("wc-toast").hidden = false;
  clearTimeout(fading);
  fading = setTimeout(() => { $("wc-toast").hidden = true; }, 2500);
}

// ---- the log

function centre(line, wants) {
  if (!line) return;
  if (line.hidden) showAllLines();
  const box = line.closest(".log");
  box.scrollTop = line.offsetTop - box.clientHeight / 3;
  if (!wants) return;
  for (const other of box.querySelectorAll(".l.now")) other.classList.remove("now");
  line.classList.add("now");
  box.scrollIntoView({ block: "center" });
  line.focus({ preventScroll: true });
}

function jump(role) {
  const lines = [...element.querySelectorAll(`.log .l[data-role="${role}"]`)];
  if (!lines.length) return;
  const next = role in jumps ? (jumps[role] + 1) % lines.length : 0;
  jumps[role] = next;
  centre(lines[next], true);
}

function lineOf(number, file) {
  return [...element.querySelectorAll(`.log .l[data-line="${Number(number)}"]`)].find((line) => (line.dataset.file || "") === (file || ""))
    || element.querySelector(`.log .l[data-line="${Number(number)}"]`);
}

function caseOf(name) {
  const item = [...element.querySelectorAll("#wc-cases [data-case]")].find((part) => part.dataset.case === name);
  if (!item) return;
  item.closest("details").open = true;
  item.scrollIntoView({ block: "center" });
  item.focus({ preventScroll: true });
}

// ---- history

let waiting = 0;
async function past(after) {
  try {
    const { html } = await server.past({ words: $("wc-search").value, after: after || null, language });
    if (html === undefined) return;
    const box = $("wc-past");
    if (after) box.querySelector('[data-do="more"]')?.remove();
    box.innerHTML = after ? box.innerHTML + html : html;
    for (const item of box.querySelectorAll("[data-triage]")) item.toggleAttribute("aria-current", item.dataset.triage === state.triage);
  } catch { /* the list stays as it is; what matters more says that the server is away */ }
}

function toggleHistory(is) {
  const wide = matchMedia("(min-width: 1100px)").matches;
  const name = wide ? "narrow" : "drawer";
  const on = element.querySelector(".wc").classList.toggle(name, is);
  const isOpen = wide ? !on : on;
  element.querySelector('[data-do="history"]').setAttribute("aria-expanded", String(isOpen));
  if (isOpen) { past(); $("wc-search").focus(); }
}

// ---- what buttons do

async function copy(text, told) {
  try {
    await navigator.clipboard.writeText(text);
    toast(say(told));
  } catch {
    toast(say("copy-failed"));
  }
}

function save(text, name) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/x-diff" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

async function called(work, told) {
  try {
    const answer = await work();
    if (answer && answer.error) { toast(answer.error); return null; }
    if (told) toast(say(told));
    return answer;
  } catch {
    toast(say("failed-call"));
    return null;
  }
}

async function judge(opinion) {
  const answer = await called(() => server.judge({ triage: state.triage, language, ...opinion }));
  if (!answer) return;
  $("wc-thanks").textContent = say("sent");
  $("wc-wrong").hidden = true;
  for (const button of element.querySelectorAll('.feedback [data-do]')) button.setAttribute("aria-pressed", String((button.dataset.do === "right") === opinion.right));
}

async function noteCrash(form) {
  const noted = { state: form.state.value, owner: form.owner.value, fixed_by: form.fixed_by.value };
  if (await called(() => server.note_crash({ triage: state.triage, language, ...noted }))) $("wc-thanks").textContent = say("sent");
}

// The address of what is shown: a triage, or a job of a batch.
function address() {
  const part = state.job ? "?job=" + encodeURIComponent(state.job) : "?triage=" + encodeURIComponent(state.triage);
  return location.origin + location.pathname + part;
}

const DEEDS = {
  ...BATCH_DEEDS,
  pick() { $("wc-file").click(); },
  new() { startOver(); },
  again() {
    // What was pasted and added is still there; an address that leads nowhere has nothing.
    if (!$("wc-text").value && !files.length) { startOver(); return; }
    ticket++;
    working = false;
    state = { ...IDLE };
    history.pushState({}, "", location.pathname);
    showAnswer(false);
    $("wc-text").focus();
  },
  skip(part) { const to = $(part.dataset.to); if (to && to.offsetParent) { to.focus(); to.scrollIntoView({ block: "center" }); } },
  example(part) { begin({ example: part.dataset.example }); },
  language() {
    language = language === "zh" ? "en" : "zh";
    memory.set("language", language);
    speak();
    past();
    if (batch) openBatch(batch, false);
    else if (state.job) openJob(state.job, false);
    else if (state.triage && !working) look(state.triage);
  },
  theme() {
    memory.set("theme", document.body.classList.contains("dark") ? "light" : "dark");
    paintTheme();
  },
  history() { toggleHistory(); },
  more(part) { past(part.dataset.after); },
  open(part) { if (!matchMedia("(min-width: 1100px)").matches) toggleHistory(false); open(part.dataset.triage, true); },
  share() { copy(address(), "link-copied"); },
  "copy-markdown"() { copy(state.markdown + "\n" + address() + "\n", "markdown-copied"); },
  "copy-patch"() { copy(state.patch, "copied"); },
  "copy-command"() { copy(state.command, "copied"); },
  "save-patch"() { save(state.patch, "whycrash.patch"); },
  "save-command"() { save(state.command + "\n", "run.sh"); },
  jump(part) { jump(part.dataset.role); },
  right() { judge({ right: true }); },
  wrong(part) {
    const form = $("wc-wrong");
    form.hidden = !form.hidden;
    part.setAttribute("aria-expanded", String(!form.hidden));
    if (!form.hidden) $("wc-real-cause").focus();
  },
  async prompt() {
    const answer = await called(() => server.prompt({ triage: state.triage, language }));
    if (!answer) return;
    $("wc-prompt").textContent = answer.text;
    $("wc-prompt").hidden = false;
  },
  async forget() {
    if (!confirm(say("forget-sure"))) return;
    if (await called(() => server.forget({ triage: state.triage, language }), "forgotten")) { startOver(); past(); }
  },
};

element.addEventListener("click", (event) => {
  const cite = event.target.closest(".cite, circle[data-line]");
  if (cite) {
    if (cite.dataset.case) caseOf(cite.dataset.case); else centre(lineOf(cite.dataset.line, cite.dataset.file), true);
    return;
  }
  const numbered = event.target.closest("a.n");
  if (numbered && !(event.ctrlKey || event.metaKey || event.shiftKey)) { event.preventDefault(); followLine(numbered); return; }
  const part = event.target.closest("[data-do]");
  if (!part || (part.tagName === "A" && (event.ctrlKey || event.metaKey || event.shiftKey || event.button))) return;
  event.preventDefault();
  DEEDS[part.dataset.do]?.(part);
});

element.addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.target.id === "wc-form") explain();
  if (event.target.id === "wc-follow") ask();
  if (event.target.id === "wc-crash") noteCrash(event.target);
  if (event.target.id === "wc-wrong") judge({ right: false, cause: event.target.cause.value || null, fix: event.target.fix.value });
});

$("wc-text").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); explain(); } });
$("wc-question").addEventListener("keydown", (event) => {
  // While Chinese is composed, Enter chooses a word.
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); ask(); }
});
$("wc-text").addEventListener("paste", (event) => {
  const text = event.clipboardData?.getData("text/plain") || "";
  if (event.clipboardData?.files.length) { event.preventDefault(); addFiles(event.clipboardData.files); }
  if (text.length > LONG) { event.preventDefault(); addFiles([new File([text], "pasted.log")]); }
});
$("wc-file").addEventListener("change", (event) => { addFiles(event.target.files); event.target.value = ""; });
$("wc-text").addEventListener("input", () => complain(""));
$("wc-search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => past(), 200); });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && element.querySelector(".wc").classList.contains("drawer")) toggleHistory(false);
});
// What the address names is shown; tells whether it names anything.
function follow() {
  const asked = new URLSearchParams(location.search);
  for (const [name, show] of [["triage", open], ["batch", openBatch], ["job", openJob]]) {
    if (asked.get(name)) { show(asked.get(name), false); return true; }
  }
  return false;
}

addEventListener("popstate", () => { if (!follow()) { working = false; ticket++; showAnswer(false); } });

// ---- begin

watch("value", () => { if (props.value?.panels && props.value.ticket === ticket) apply(props.value); });
paintTheme();
speak();
element.querySelector(".wc").classList.add("ready");
takeDraft();
if (!follow() && matchMedia("(min-width: 1100px)").matches) $("wc-text").focus();
past();
