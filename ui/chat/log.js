// The log's panel: lines by their words and by who printed them, and an address for each. `page.js` follows.

function findLines() {
  const words = ($("wc-log-search")?.value || "").trim().toLowerCase();
  const who = $("wc-log-who")?.value || "";
  const box = element.querySelector(".log");
  if (!box) return;
  const isOn = Boolean(words || who);
  let count = 0;
  for (const line of box.querySelectorAll(".l")) {
    const fits = (!who || line.dataset.who === who) && (!words || line.querySelector("code").textContent.toLowerCase().includes(words));
    line.hidden = isOn && !fits;
    if (isOn && fits) count++;
  }
  for (const gap of box.querySelectorAll(".gap")) gap.hidden = isOn;
  $("wc-log-count").textContent = isOn ? say(count === 1 ? "log-found-one" : "log-found", { count }) : "";
  if (!isOn) centre(box.querySelector(".l.now") || box.querySelector('.l[data-role="root"]'), false);
}

function showAllLines() {
  if ($("wc-log-search")) $("wc-log-search").value = "";
  if ($("wc-log-who")) $("wc-log-who").value = "";
  findLines();
}

// A line's number: its address in the bar, and the line among its neighbours.
function followLine(link) {
  const line = link.closest(".l");
  history.replaceState(history.state, "", link.getAttribute("href"));
  showAllLines();
  centre(line, true);
}

// An address that ends in a line leads there once, when the log is there: in the answer that it names and in no
// other one, and to a line of the file that it names.
const named = () => { const asked = new URLSearchParams(location.search); return asked.get("triage") || asked.get("job") || ""; };
const soughtIn = named();
let sought = soughtIn ? location.hash : "";
function seekLine() {
  const hash = sought;
  // What is not there once all is told, or is no line, is not looked for in what is opened next.
  if (named() !== soughtIn || state.state !== "running") sought = "";
  if (named() !== soughtIn) return;
  let name = "";
  try { name = decodeURIComponent(hash.slice(1)); } catch { sought = ""; return; }
  const found = /^(?:(.+):)?L(\d{1,12})$/.exec(name);
  const line = found && lineOf(found[2], found[1]);
  if (!line || (found[1] && line.dataset.file !== found[1])) return;
  sought = "";
  history.replaceState(history.state, "", line.querySelector(".n").getAttribute("href"));
  centre(line, true);
}

document.addEventListener("input", (event) => { if (event.target.id === "wc-log-search" || event.target.id === "wc-log-who") findLines(); });
