"use strict";
// Texts of an index become text nodes, never HTML: nothing in this file parses any.
const at = (id) => document.getElementById(id);
const HITS = 20, MOST_FACTS = 5, MOST_CHARS = 20_000; // of a text
let key = location.hash.slice(1) || sessionStorage.getItem("key") || "";
let served = []; // the indexes by column: the one to compare with is first
let running = null; // aborts the current search

function make(tag, looks, ...inside) {
  const made = document.createElement(tag);
  if (looks) made.className = looks;
  made.append(...inside);
  return made;
}

function trouble(words) {
  at("trouble").textContent = words;
  at("trouble").hidden = !words;
}

async function ask(body, signal) {
  const headers = { "Content-Type": "application/json" };
  if (key) headers.Authorization = "Bearer " + key;
  const sent = body ? { method: "POST", body: JSON.stringify(body) } : {};
  const answer = await fetch("search", { ...sent, headers, signal, cache: "no-store" });
  const reply = await answer.json();
  if (answer.status === 401) {
    lock(true);
    throw new Error(key ? "This key is wrong." : "");
  }
  if (!answer.ok) throw new Error(reply.error.message);
  return reply;
}

function lock(locked) {
  at("lock").hidden = !locked;
  at("form").hidden = at("keys").hidden = locked;
  at(locked ? "key" : "box").focus();
}

async function begin() {
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  const given = new URLSearchParams(location.search);
  at("box").value = given.get("q") || "";
  document.querySelectorAll("#by input").forEach((input) => { input.checked ||= input.value === given.get("by"); });
  try {
    const { indexes } = await ask();
    lock(false);
    trouble("");
    if (key) sessionStorage.setItem("key", key); // only in this tab
    served = indexes.map((index, number) => ({ ...index, number })).reverse();
    document.body.classList.toggle("two", served.length > 1);
    at("sideways").hidden = served.length < 2;
    at("lists").dataset.side = served.length - 1;
    at("box").placeholder = `Search ${served.at(-1).texts.toLocaleString("en")} texts`;
    await search();
  } catch (error) { trouble(error.message); }
}

async function search() {
  const text = at("box").value.trim(), by = document.querySelector("#by :checked").value;
  running?.abort();
  running = new AbortController();
  const { signal } = running, start = performance.now();
  history.replaceState(null, "", text ? "?" + new URLSearchParams({ q: text, by }) : location.pathname);
  document.title = text ? text.slice(0, 60) + " · Search" : "Search";
  document.body.classList.toggle("busy", Boolean(text));
  if (!text || !served.length) return draw(null, "");
  try {
    const lists = await Promise.all(served.map(({ number }) => ask({ text, by, top: HITS, index: number }, signal)));
    draw(lists.map(({ hits }) => hits), text);
    at("status").textContent = `${lists.at(-1).hits.length} hits, ${Math.round(performance.now() - start)} ms`;
    trouble("");
  } catch (error) {
    if (error.name === "AbortError") return;
    trouble(error.message);
  }
  document.body.classList.remove("busy");
}

function draw(lists, text) {
  at("status").textContent = "";
  const words = new Set(text.toLowerCase().match(/[\p{L}\p{N}_]{3,}/gu) || []);
  const before = new Map((lists && lists.length > 1 ? lists[0] : []).map((hit, rank) => [hit.text, rank]));
  at("lists").replaceChildren(...served.map(({ model, columns, texts }, side) => {
    const others = make("button", "", "Other model");
    others.type = "button";
    others.addEventListener("click", () => { at("lists").dataset.side = 1 - side; });
    const heading = make("h2", "", make("span", "", make("b", "", model), side ? ` compared with ${served[0].model}` : ` ${texts.toLocaleString("en")} texts`), ...(served.length > 1 ? [others] : []));
    const hits = lists ? lists[side].map((hit, rank) => card(hit, rank, words, columns, side && lists.length > 1 ? before.get(hit.text) ?? -1 : rank)) : [];
    const none = lists ? "Nothing found. Try other words, or rank by meaning." : "Type a question, an error message or a few words.";
    return make("section", "", heading, hits.length ? make("ol", "", ...hits) : make("p", "none", none));
  }));
}

function card(hit, rank, words, columns, was) {
  const links = Object.entries(hit.row).sort(([name]) => (name === "url" ? -1 : 0)).map(([, value]) => link(value)).filter(Boolean);
  const name = (typeof hit.key === "number" ? { row: "row ", number: "#" }[hit.key_column] ?? "" : "") + hit.key;
  const known = make("bdi", "known", links.length ? link(links[0].href, name) : name);
  const bar = make("i"), score = make("span", "score", make("span", "bar", bar), hit.score.toFixed(2));
  bar.style.width = 100 * Math.min(1, Math.max(0, hit.score)) + "%";
  score.title = [["cosine", hit.cosine], ["words", hit.words]].filter(([, value]) => value !== null).map(([part, value]) => `${part} ${value.toFixed(3)}`).join(", ");
  const moved = was === rank ? [] : [was < 0 ? make("span", "move up", "new") : make("span", was > rank ? "move up" : "move", (was > rank ? "▲ " : "▼ ") + Math.abs(was - rank))];
  const text = hit.text.slice(0, MOST_CHARS), end = text.search(/\n|$/);
  const rest = text.slice(end).trim().replace(/\n{3,}/g, "\n\n");
  const shown = make("p", "text", make(rest ? "b" : "span", "first", ...marked(text.slice(0, end), words)), make("span", "rest", ...marked(rest, words)));
  shown.dir = "auto";
  if (hit.text.length > MOST_CHARS) shown.append(` … ${(hit.text.length - MOST_CHARS).toLocaleString("en")} more characters`);
  const chips = Object.entries(hit.row).filter(([column, value]) => isShort(value) && ![...columns, "url", hit.key_column, ...(hit.key_column === "place" ? ["file", "anchor"] : [])].includes(column));
  const facts = make("p", "facts", ...chips.slice(0, MOST_FACTS).map(([column, value]) => make("span", "", make("i", "", column), " ", make("bdi", "", String(value)))));
  const fields = Object.entries(hit.row).filter(([column, value]) => value !== null && value !== "" && !columns.includes(column));
  const list = make("dl", "", ...fields.flatMap(([column, value]) => [make("dt", "", column), make("dd", "", link(value) || make("bdi", "", String(value)))]));
  return make("li", "", make("details", "", make("summary", "", make("p", "meta", String(rank + 1), known, ...moved, score), shown, ...(chips.length ? [facts] : [])), ...(fields.length ? [list] : [])));
}

// Such as a state, a customer or a priority; also the items of a short list.
function isShort(value) {
  return value !== null && typeof value !== "object" ? /^\S.{0,29}$/u.test(String(value)) && !link(value) : Array.isArray(value) && value.length > 0 && isShort(value.join(", "));
}

function marked(text, words) {
  return text.split(/([\p{L}\p{N}_]+)/u).map((part) => (words.has(part.toLowerCase()) ? make("mark", "", part) : part));
}

function link(value, words = value) {
  if (typeof value !== "string" || !/^https?:\/\/\S+$/i.test(value) || !URL.canParse(value) || new URL(value).username) return null;
  const made = make("a", "", words);
  made.href = new URL(value).href;
  made.rel = "noopener noreferrer nofollow";
  made.target = "_blank";
  return made;
}

function move(side, rank) {
  const cards = [...document.querySelectorAll("#lists section")].map((list) => [...list.querySelectorAll("summary")]);
  const hits = cards[side]?.filter((card) => card.offsetParent) || [];
  const next = rank < 0 ? at("box") : hits[Math.min(rank, hits.length - 1)];
  next?.focus();
  return Boolean(next);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const card = document.activeElement.closest("summary"), box = document.activeElement === at("box");
  const cards = card ? [...card.closest("section").querySelectorAll("summary")] : [];
  const rank = cards.indexOf(card), side = card ? [...at("lists").children].indexOf(card.closest("section")) : Number(at("lists").dataset.side);
  const acts = {
    ArrowDown: () => (box || card) && move(side, rank + 1),
    ArrowUp: () => card && move(side, rank - 1),
    ArrowLeft: () => card && move(side - 1, rank),
    ArrowRight: () => card && move(side + 1, rank),
    Escape: () => card && move(side, -1),
    "/": () => document.activeElement.tagName !== "INPUT" && move(side, -1),
  };
  if (acts[event.key]?.()) event.preventDefault();
});

let pause = 0; // until a search while typing
at("box").addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(search, 200);
});
at("by").addEventListener("change", search);
at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(pause);
  search();
});
at("lock").addEventListener("submit", (event) => {
  event.preventDefault();
  key = at("key").value.trim();
  begin();
});
begin();
