"use strict";
// Texts of a dataset become text nodes, never HTML: nothing in this file parses any.
const at = (id) => document.getElementById(id);
const PENDING = "pairs review pending ";

const token = ownToken();
let state = null; // the last state from the server
let relation = ""; // of the current pair
const marked = new Set(); // results that fit, also those of queries whose answers were undone
let busy = true; // while a request is running
let seen = 0, since = performance.now(); // milliseconds in which the pair was visible

function ownToken() {
  const given = location.hash.slice(1);
  if (given && keep(sessionStorage, "token", given)) { // only in this tab, so that two people can use two tabs
    history.replaceState(null, "", location.pathname);
  }
  return given || sessionStorage.getItem("token") || "";
}

// If the browser stores nothing, an unsent judgement exists only as long as the tab.
function keep(where, key, value) {
  try {
    where.setItem(key, value);
    return true;
  } catch {
    return false;
  }
}

function make(tag, looks, ...inside) {
  const made = document.createElement(tag);
  if (looks) made.className = looks;
  made.append(...inside);
  return made;
}

// -- the server ---------------------------------------------------------------------------------------------

const wait = (seconds) => new Promise((go) => setTimeout(go, 1000 * seconds));

async function ask(path, body) {
  // Repeated until there is a response; judgements have keys, so that they are saved once.
  for (let tries = 0; ; tries += 1) {
    let fault = "The server doesn't respond";
    try {
      const answer = await fetch(path, {
        method: body === undefined ? "GET" : "POST",
        headers: { Authorization: "Bearer " + token, ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
        body: body === undefined ? undefined : JSON.stringify(body),
        cache: "no-store",
      });
      if (answer.status < 500) {
        const reply = await answer.json();
        trouble("");
        return { status: answer.status, ...reply };
      }
      fault = (await answer.json()).error || fault;
    } catch { /* no server, or an error that is not JSON */ }
    trouble(fault + ". Your last answer is kept here and sent again until it is saved.");
    await wait(Math.min(5, 0.5 * 2 ** tries));
  }
}

function trouble(words) {
  if (at("trouble").textContent === words) return;
  at("trouble").textContent = words;
  at("trouble").hidden = !words;
}

async function turn(path, body) {
  if (busy && state) return null;
  busy = true;
  const answer = await ask(path, body);
  busy = false;
  if (answer.progress) draw(answer);
  else {
    // For example, the pair was assigned to another person: show the current one.
    if (answer.status === 422) draw(await ask("/api/state"));
    trouble(answer.error || "This answer was refused; reload the page.");
  }
  return answer;
}

async function begin() {
  const mine = PENDING + token.slice(0, 6) + " ";
  const kept = Object.keys(localStorage).filter((key) => key.startsWith(mine)); // from a tab that was closed before they were sent
  for (const key of kept) forget(key, await ask("/api/judge", JSON.parse(localStorage.getItem(key))));
  await turn("/api/state");
}

function forget(key, answer) {
  if (answer.status !== 401) localStorage.removeItem(key); // otherwise it was not saved
}

async function judge(answer) {
  if (busy || !state.pair) return;
  const answers = Object.fromEntries(state.pair.ids.map((id) => [id, typeof answer === "string" ? answer : answer(id)]));
  const said = {
    key: crypto.randomUUID(), answers, relation,
    note: at("note").value.trim(), seconds: Math.round((seen + inView()) / 100) / 10,
  };
  const kept = PENDING + token.slice(0, 6) + " " + said.key;
  keep(localStorage, kept, JSON.stringify(said));
  const reply = await turn("/api/judge", said);
  forget(kept, reply);
  if (reply.progress) at("status").textContent = (reply.error ? reply.error : "Saved: " + Object.values(answers).join(", ")) + ". " + at("count").textContent;
}

async function undo() {
  if (busy || !state.last) return;
  const before = state.last;
  const reply = await turn("/api/undo", { key: before.key });
  if (!reply.pair || reply.pair.id !== before.pair) return;
  choose(before.relation);
  state.pair.ids.filter((id) => before.answers[id] === "yes").forEach((id) => marked.add(id));
  drawMarks();
  if (before.note) note(before.note);
  at("status").textContent = "Undone: " + Object.values(before.answers).join(", ") + ". " + at("count").textContent;
}

// -- the pair -----------------------------------------------------------------------------------------------

function draw(answer) {
  const isNew = !state || !state.pair || !answer.pair || answer.pair.id !== state.pair.id;
  state = answer;
  at("dataset").textContent = state.dataset;
  at("person").textContent = state.person;
  at("question").textContent = state.question;
  document.body.dataset.asked = state.asked;
  drawProgress();
  drawLast();
  at("judging").hidden = !state.pair;
  at("end").hidden = Boolean(state.pair);
  if (!state.pair) drawEnd();
  else if (isNew) drawPair();
  drawButtons();
}

function drawProgress() {
  const { done, all, skipped, seconds_each: each } = state.progress;
  const left = all - done - skipped;
  const words = [`${done.toLocaleString("en")} of ${all.toLocaleString("en")} judged`];
  if (skipped) words.push(`${skipped} skipped`);
  if (each && left) words.push(`${each} s each`, `about ${span(left * each)} to go`);
  at("progress").textContent = words.join(" · ");
  at("bar").max = Math.max(1, all);
  at("bar").value = done + skipped;
  at("count").textContent = state.pair ? `${byQuery() ? "Query" : "Pair"} ${done + skipped + 1} of ${all}` : "Done";
  document.title = `${done} / ${all} · Review`;
}

function span(seconds) {
  const minutes = Math.ceil(seconds / 60);
  return minutes < 100 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}

function drawPair() {
  state.pair.texts.slice(0, 2).forEach((text, side) => at("text" + side).replaceChildren(...parts(text)));
  if (byQuery()) drawResults();
  document.querySelectorAll(".text").forEach((text) => { text.scrollTop = 0; });
  relation = "";
  at("note").value = "";
  at("noted").hidden = true;
  seen = 0;
  since = performance.now();
  document.body.dataset.marks = state.pair.marks;
  scrollTo({ top: 0, behavior: "instant" });
  at("main").focus({ preventScroll: true });
}

const byQuery = () => state.asked === "results";

function drawResults() {
  at("name0").textContent = "Query";
  at("name1").parentNode.hidden = true;
  at("results").hidden = false;
  at("results").replaceChildren(...state.pair.texts.slice(1).map((text, place) => {
    const shown = make("span", "text", ...parts(text));
    shown.dir = "auto";
    const made = make("button", "", make("kbd", "", String(place + 1)), shown);
    made.type = "button";
    made.addEventListener("click", (event) => {
      mark(place);
      if (event.detail) at("main").focus({ preventScroll: true }); // a mouse: the next Enter is for the query
    });
    return made;
  }));
  drawMarks();
}

function mark(place) {
  const id = state.pair.ids[place];
  if (id && !marked.delete(id)) marked.add(id);
  drawMarks();
}

function drawMarks() {
  [...at("results").children].forEach((made, place) => made.setAttribute("aria-pressed", String(marked.has(state.pair.ids[place]))));
}

function judgeMarked() {
  if (state.pair.ids.some((id) => marked.has(id))) judge((id) => (marked.has(id) ? "yes" : "no"));
  else trouble("Mark the results that fit by their numbers, or press 0 if none fits.");
}

function judgeNone() {
  state.pair.ids.forEach((id) => marked.delete(id));
  judge("no");
}

function parts({ pieces, left_out: leftOut }) {
  const found = pieces.map(([text, marked]) => (marked ? make("mark", "", text) : text));
  if (leftOut) found.push(make("p", "", `… ${leftOut.toLocaleString("en")} more characters, which this page does not show`));
  return found;
}

function inView() { return document.hidden ? 0 : performance.now() - since; }

document.addEventListener("visibilitychange", () => {
  if (document.hidden) seen += performance.now() - since;
  since = performance.now();
});

// -- the last judgement, and the end ------------------------------------------------------------------------

function drawLast() {
  const { last } = state;
  at("last").hidden = !last || !last.origin;
  if (at("last").hidden) return;
  at("said").textContent = `Previous pair: you answered ${last.answers[last.pair]}. Its source`;
  const rows = [["label in the dataset", last.label], ...Object.entries(last.origin)];
  at("origin").replaceChildren(...rows.flatMap(([name, value]) => [make("dt", "", name), make("dd", "", linked(value))]));
}

function linked(value) {
  let url = null;
  try { url = new URL(value); } catch { return make("bdi", "", value); }
  if (url.protocol !== "https:" || url.username) return make("bdi", "", value);
  const link = make("a", "", value);
  link.href = url.href;
  link.rel = "noopener noreferrer nofollow";
  link.target = "_blank";
  return link;
}

function drawEnd() {
  const { all, skipped } = state.progress;
  at("ended").textContent = `All of your ${all} ${byQuery() ? "queries" : "pairs"} are judged and saved. Thank you! You can close this page.`;
  at("skipped").textContent = `Show ${skipped} skipped ${byQuery() ? "queries" : "pairs"} again`;
  at("skipped").hidden = !skipped;
  at("status").textContent = at("ended").textContent;
}

// -- buttons and keys ---------------------------------------------------------------------------------------

const RELATION_KEYS = { duplicate: "d", superseded: "p", related: "r" };
let keys = {}; // action of each key
let keyList = []; // key and meaning, for the list of keys

function key(letter, words, act) {
  keys[letter.toLowerCase()] = act;
  keyList.push([letter, words]);
}

function button(id, words, letter, act) {
  const hint = make("kbd", "", letter);
  hint.setAttribute("aria-hidden", "true");
  const made = make("button", "", words, words === letter ? "" : hint);
  made.type = "button";
  made.id = id;
  made.addEventListener("click", act);
  key(letter, words, act);
  return made;
}

function drawButtons() {
  if (at("answers").childElementCount) {
    at("tool-undo").setAttribute("aria-disabled", String(!state.last));
    return;
  }
  if (byQuery()) drawResultButtons();
  else drawAnswers();
  at("relations").append(
    ...state.relations.map((kind) => button("relation-" + kind, name(kind), RELATION_KEYS[kind] || kind[0], () => choose(relation === kind ? "" : kind))),
  );
  at("relations").hidden = !state.relations.length;
  choose(relation);
  at("tools").append(
    button("tool-skip", "Skip", "s", () => judge("skip")),
    button("tool-undo", byQuery() ? "Back" : "Undo", "z", undo),
    button("tool-note", "Note", "c", () => note(at("note").value)),
  );
  Object.assign(keys, { backspace: keys.z, arrowleft: keys.z });
  at("keys").append(...keyList.flatMap(([letter, words]) => [make("dt", "", make("kbd", "", letter)), make("dd", "", words)]));
  drawButtons();
}

function drawResultButtons() {
  keyList.push(["1–9", "Mark a result that fits, or remove its mark"]);
  for (let place = 0; place < 9; place += 1) keys[place + 1] = () => mark(place);
  at("answers").append(
    button("answer-next", "Next", "Enter", judgeMarked),
    button("answer-none", "None fits", "0", judgeNone),
    button("answer-unsure", "Unsure", "u", () => judge("unsure")),
  );
  Object.assign(keys, { " ": keys.enter, n: keys[0] });
}

function drawAnswers() {
  const grades = state.asked === "grades";
  const answers = grades ? ["0", "1", "2", "3", "4", "5"] : ["yes", "no"];
  at("answers").append(
    ...answers.map((answer) => button("answer-" + answer, name(answer), answer[0], () => judge(answer))),
    button("answer-unsure", "Unsure", "u", () => judge("unsure")),
  );
  at("answers").className = grades ? "grades" : "";
  at("scale").hidden = !grades;
  if (!grades) Object.assign(keys, { 1: keys.y, 2: keys.n, 3: keys.u });
}

const name = (word) => word[0].toUpperCase() + word.slice(1);

function choose(kind) {
  relation = kind;
  for (const made of at("relations").children) made.setAttribute("aria-pressed", String(made.id === "relation-" + kind));
}

function note(words) {
  at("noted").hidden = false;
  at("note").value = words;
  at("note").focus();
}

at("note").addEventListener("keydown", (event) => {
  if (event.key !== "Escape" && (event.key !== "Enter" || event.shiftKey)) return;
  event.preventDefault();
  at("main").focus({ preventScroll: true });
});
at("skipped").addEventListener("click", () => turn("/api/skipped", {}));

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.defaultPrevented) return;
  if (!at("shortcuts").checked || !state || event.target.matches("textarea, input")) return;
  if (/^(Enter| )$/.test(event.key) && event.target.matches("button, a, summary")) return;
  const act = keys[event.key.toLowerCase()];
  if (!act || (!state.pair && act !== undo)) return;
  event.preventDefault();
  act();
});
window.addEventListener("hashchange", () => location.reload()); // another person's link in this tab
begin();
