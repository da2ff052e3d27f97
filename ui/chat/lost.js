// A server that stops in the middle of an answer. `page.js` follows in the same program.

// What was pasted and not taken in outlives the page's reload; the tab alone has it, and only until then.
function keepDraft() {
  try { if (!state.triage && $("wc-text").value) sessionStorage.setItem("whycrash-draft", $("wc-text").value); } catch { /* too long, or a browser that keeps nothing */ }
}

function takeDraft() {
  try {
    const draft = sessionStorage.getItem("whycrash-draft");
    if (!draft) return;
    sessionStorage.removeItem("whycrash-draft");
    $("wc-text").value = draft;
    complain(say("back"));
  } catch { /* nothing was kept */ }
}

async function beat() {
  if (!working && !lost) return;
  try {
    const answer = await fetch(new URL("gradio_api/app_id", location.href), { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    if (lost) { keepDraft(); location.reload(); }
  } catch {
    lost = true;
    $("wc-lost").textContent = say(state.triage ? "lost" : "lost-before");
    $("wc-lost").hidden = false;
  }
}
setInterval(beat, 1500);
