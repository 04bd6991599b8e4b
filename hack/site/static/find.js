// Finds pages by words. The text of all pages is loaded when somebody begins to search, and by a script: a page that is read from a folder may
// load no other file.
const base = new URL(".", document.currentScript.src);
let espalierPages;

function load() {
  if (espalierPages || document.getElementById("pages")) return;
  const script = document.createElement("script");
  script.id = "pages";
  script.src = new URL("search.js", base);
  script.onload = find;
  document.head.append(script);
}

function find() {
  const words = document.getElementById("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const list = document.getElementById("found");
  list.replaceChildren();
  if (!espalierPages || words.length === 0) return;
  const found = espalierPages.map(page => {
    const title = page.title.toLowerCase(), text = page.text.toLowerCase();
    const times = words.map(word => 20 * title.split(word).length - 20 + text.split(word).length - 1);
    return {page, score: Math.min(...times) > 0 ? times.reduce((a, b) => a + b) : 0};
  }).filter(f => f.score > 0).sort((a, b) => b.score - a.score).slice(0, 10);
  for (const {page} of found) {
    const item = document.createElement("li"), link = document.createElement("a"), place = document.createElement("span");
    const at = page.text.toLowerCase().indexOf(words[0]);
    link.href = new URL(page.url, base);
    link.textContent = page.title;
    place.textContent = at < 0 ? "" : page.text.slice(Math.max(0, at - 40), at + 80).replace(/\s+/g, " ");
    item.append(link, place);
    list.append(item);
  }
  if (found.length === 0) list.append(Object.assign(document.createElement("li"), {textContent: "No page has all these words."}));
}

document.getElementById("find").addEventListener("focus", load);
document.getElementById("find").addEventListener("input", () => { load(); find(); });
document.querySelector("form").addEventListener("submit", event => {
  event.preventDefault();
  document.querySelector("#found a")?.click();
});
