// Every word of the question must stand in the section (or in its page's title). What is found is
// sorted by where it stands: title, heading, text; whole words before parts of words.
(() => {
  "use strict";
  const MOST = 60, AROUND = 90;
  const KINDS = { lesson: 3, extras: 2, statements: 1, teach: 0, solutions: 0 };
  const plain = (text) => text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
  const rows = [];
  for (const [address, kind, title, sections] of window.RLNB_SEARCH)
    for (const [anchor, heading, text] of sections)
      rows.push({ address, kind, title, anchor, heading, text,
        inTitle: plain(title), inHeading: plain(heading), inText: plain(text) });

  const whole = (text, word) => {
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
      const sides = (text[at - 1] || " ") + (text[at + word.length] || " ");
      if (!/[\p{L}\p{N}]/u.test(sides)) return true;
    }
    return false;
  };
  const worth = (row, word) => {
    let points = 0;
    for (const [text, weight] of [[row.inTitle, 4], [row.inHeading, 8], [row.inText, 2]])
      if (text.includes(word)) points += whole(text, word) ? 2 * weight : weight / 2;
    return points;
  };
  const find = (asked) => {
    const words = plain(asked).split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    const hits = [];
    for (const row of rows) {
      const points = words.map((word) => worth(row, word));
      const here = words.some((word) => row.inHeading.includes(word) || row.inText.includes(word));
      if (!here || !points.every(Boolean)) continue;
      const phrase = words.length > 1 && words.join(" ");  // as it was written, side by side
      const beside = phrase ? 8 * row.inHeading.includes(phrase) + 6 * row.inText.includes(phrase) : 0;
      hits.push({ row, words: phrase ? [phrase, ...words] : words,
        points: points.reduce((a, b) => a + b) + beside + KINDS[row.kind] });
    }
    return hits.sort((a, b) => b.points - a.points);
  };

  // The text around the first word that is found, all words marked.
  const excerpt = ({ row, words }) => {
    const first = words.map((word) => row.inText.indexOf(word)).find((at) => at >= 0) ?? 0;
    const space = row.text.indexOf(" ", first - AROUND);  // begin with a whole word
    const from = first <= AROUND ? 0 : space < first ? space + 1 : first;
    const piece = row.text.slice(from, from + 2.5 * AROUND), low = plain(piece);
    const shown = document.createElement("p");
    if (from) shown.append("… ");
    // where letters were taken apart (ﬁ, ½) positions differ: then nothing is marked
    const marks = low.length === piece.length ? words : [];
    for (let at = 0; at < piece.length;) {
      const next = marks.map((word) => [low.indexOf(word, at), word.length])
        .filter(([place]) => place >= 0).sort((a, b) => a[0] - b[0])[0];
      if (!next) { shown.append(piece.slice(at)); break; }
      const mark = document.createElement("mark");
      mark.textContent = piece.slice(next[0], next[0] + next[1]);
      shown.append(piece.slice(at, next[0]), mark);
      at = next[0] + next[1];
    }
    if (from + piece.length < row.text.length) shown.append(" …");
    return shown;
  };

  const field = document.getElementById("words"), list = document.getElementById("hits");
  const found = document.getElementById("found");
  const show = () => {
    const hits = find(field.value);
    list.replaceChildren(...hits.slice(0, MOST).map((hit) => {
      const item = document.createElement("li"), way = document.createElement("a");
      way.href = hit.row.address + (hit.row.anchor ? `#${encodeURIComponent(hit.row.anchor)}` : "");
      way.textContent = hit.row.heading || hit.row.title;
      const where = document.createElement("span");
      where.className = "where";
      where.textContent = `${hit.row.kind} · ${hit.row.title}`;
      item.append(way, where, excerpt(hit));
      return item;
    }));
    const shown = hits.length > MOST ? `, the first ${MOST} shown` : "";
    found.textContent = !field.value.trim() ? "" : !hits.length
      ? "Nothing has all these words. Try fewer, or parts of words."
      : `${hits.length} section${hits.length > 1 ? "s" : ""}${shown}`;
  };
  field.value = new URLSearchParams(location.search).get("q") || "";
  let soon = 0;
  field.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(show, 120); });
  document.getElementById("ask").addEventListener("submit", (event) => { event.preventDefault(); show(); });
  show();
  if (!field.value) field.focus();
})();
