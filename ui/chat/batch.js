// Many jobs at once: handed in, watched, and each job's answer. `page.js` follows in the same program.

// Files that hold several jobs, and those that belong to a job beside its log.
const COLLECTION = /\.(zip|tar|tgz|tar\.(gz|zst|xz|bz2)|jsonl)$/i;
const BESIDE = /\.(sh|bash|sbatch|slurm|ya?ml|json|toml|ini|cfg|conf|env)$/i;
let batch = "";

function offerBatch() {
  const logs = files.filter((file) => !BESIDE.test(file.name));
  $("wc-as-batch").hidden = !(logs.length > 1 || logs.some((file) => COLLECTION.test(file.name)));
}

async function beginBatch() {
  const buttons = $("wc-form").querySelectorAll('[type="submit"], #wc-as-batch');
  for (const button of buttons) button.disabled = true;
  try {
    const answer = await server.begin_batch({ files: await sent(files), language });
    if (answer.error) throw new Error(answer.error);
    openBatch(answer.batch, true);
    if ($("wc-text").value.trim()) toast(say("batch-text-left"));
    past();
  } catch (error) {
    complain(error?.message || say("failed-call"));
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}

function openBatch(name, push) {
  if (push) history.pushState({}, "", "?batch=" + encodeURIComponent(name));
  if (batch !== name) $("wc-batch").replaceChildren();
  batch = name;
  working = false;
  state = { ...IDLE };
  showPart("wc-batch");
  watchBatch(name, ++ticket);
}

// Asked again while it runs, and after an error that may pass; only of what is not there, or not one's own, no more.
const POLL = 3000;
const FINAL = [403, 404];
async function watchBatch(name, mine) {
  let answer = null;
  try {
    answer = await server.batch({ batch: name, language });
  } catch { /* told and asked again below; what stands there stays */ }
  if (ticket !== mine) return;
  if (FINAL.includes(answer?.status)) { $("wc-batch").textContent = answer.error; return; }
  tellTrouble(answer ? answer.error : say("failed-call"));
  if (answer && !answer.error) {
    const first = !$("wc-batch-title");
    if (shown.batch !== answer.html || first) {
      // What has the focus keeps it: the list is rendered anew as jobs end.
      const held = document.activeElement?.closest?.("#wc-batch [data-do]");
      const way = held && `[data-do="${held.dataset.do}"]` + (held.dataset.job ? `[data-job="${held.dataset.job}"]` : "");
      $("wc-batch").innerHTML = answer.html;
      shown.batch = answer.html;
      if (way) $("wc-batch").querySelector(way)?.focus({ preventScroll: true });
    }
    document.title = answer.title + " · whycrash";
    if (first) $("wc-batch-title")?.focus({ preventScroll: true });
    if (answer.over) { announce($("wc-batch").querySelector(".told")?.textContent || ""); past(); return; }
  }
  setTimeout(() => { if (ticket === mine) watchBatch(name, mine); }, POLL);
}

// An error stands above what was shown before it, until an answer comes.
function tellTrouble(text) {
  let line = $("wc-batch-trouble");
  if (!text) { line?.remove(); return; }
  if (!line) {
    line = document.createElement("p");
    line.id = "wc-batch-trouble";
    line.setAttribute("role", "status");
    $("wc-batch").prepend(line);
  }
  if (line.textContent !== text) line.textContent = text;
}

async function openJob(name, push) {
  if (push) history.pushState({}, "", "?job=" + encodeURIComponent(name));
  working = false;
  jumps = {};
  const mine = ++ticket;
  showPart("wc-answer");
  apply({ ...IDLE, state: "waiting", panels: {} });
  const answer = await called(() => server.job({ job: name, language, ticket: mine }));
  if (answer && ticket === mine) apply(answer);
}

const BATCH_DEEDS = {
  batch() { beginBatch(); },
  "open-batch"(part) { if (!matchMedia("(min-width: 1100px)").matches) toggleHistory(false); openBatch(part.dataset.batch, true); },
  "open-job"(part) { openJob(part.dataset.job, true); },
  async "cancel-batch"() { await called(() => server.cancel_batch({ batch, language })); },
};
