// Explorers without a kernel: every setting was drawn beforehand, and the controls choose one.
// A data file calls rlnbExplorer(id, data); data is JSON, gzipped, in base64. What follows its
// controls freely has a live_*.js beside it, which computes and fills in patterns drawn beforehand.
(() => {
  "use strict";
  if (window.rlnbExplorer) return; // a page with two explorers loads this twice
  window.rlnbLive = {};
  const QUIET = 700; // ms after the last move until the picture is spoken

  const unpack = async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };

  // Until the parts are there, the picture of the page stands in their place.
  for (const box of document.querySelectorAll(".explorer")) {
    let next = box.nextElementSibling;
    while (next && next.tagName === "SCRIPT") next = next.nextElementSibling;
    if (next && next.tagName === "NOSCRIPT")
      box.querySelector(".view").innerHTML = next.textContent;
    box.hidden = false;
  }

  // A control as a number: the place of its value. A text is itself.
  const control = (place) => {
    const radios = [...place.querySelectorAll("input[type=radio]")];
    const field = place.querySelector("input, select");
    const told = place.querySelector("output");
    if (radios.length)
      return {
        get: () => radios.findIndex((radio) => radio.checked),
        set: (i) => { radios[i].checked = true; },
        say: () => {},
      };
    if (field.type === "checkbox")
      return { get: () => +field.checked, set: (i) => { field.checked = !!i; }, say: () => {} };
    if (field.type === "text")
      return { get: () => field.value, set: (text) => { field.value = text; }, say: () => {} };
    return {
      get: () => +field.value,
      set: (i) => { field.value = i; },
      say: (labels) => {
        if (!told) return;
        told.textContent = labels[+field.value];
        field.setAttribute("aria-valuetext", labels[+field.value]);
      },
    };
  };

  // Which row of a grid whose controls do not all move freely; sends the others home if need be.
  const rowOf = (data, controls, moved) => {
    const at = controls.map((each) => each.get());
    const first = data.home.length > 1 ? at[0] : 0;
    const home = data.home[first];
    const free = data.free;
    if (moved >= 0 && moved < free && data.home.length > 1)
      home.forEach((i, k) => { at[free + k] = i; });
    else if (data.rows[at.join(",")] === undefined)
      home.forEach((i, k) => { if (free + k !== moved) at[free + k] = i; });
    at.forEach((i, k) => controls[k].set(i));
    return data.rows[at.join(",")];
  };

  const start = (box, data) => {
    const controls = [...box.querySelectorAll(".control")].map(control);
    const view = box.querySelector(".view");
    const [readout, problem, heard] = [".readout", ".problem", ".heard"].map((name) =>
      box.querySelector(name));
    const goals = [...box.querySelectorAll("[data-goal]")];
    const live = data.live && window.rlnbLive[data.live];
    view.innerHTML =
      `<svg viewBox="0 0 ${data.size.join(" ")}" role="img"><g>${data.still}</g>` +
      `${"<g></g>".repeat(data.strings.length)}</svg>`;
    const svg = view.firstElementChild;
    const groups = [...svg.children].slice(1);
    const shown = groups.map(() => -1);
    let speak = 0, moves = 0;

    const tell = (alt, line) => {
      problem.textContent = "";
      readout.textContent = line;
      svg.setAttribute("aria-label", alt);
      clearTimeout(speak);
      if (moves) speak = setTimeout(() => { heard.textContent = alt; }, QUIET);
    };
    const mark = (reached) => goals.forEach((line, g) => {
      if (!reached[g] || line.classList.contains("done")) return;
      line.classList.add("done");
      line.textContent = line.textContent.replace("not yet ○", "that's it ✔");
    });

    const fromGrid = (moved) => {
      const row = data.home ? rowOf(data, controls, moved)
        : controls.reduce((k, each, i) => k * data.lengths[i] + each.get(), 0);
      if (data.problems[row]) { problem.textContent = data.problems[row]; return; }
      groups.forEach((group, i) => {
        const which = data.columns[i][row];
        if (shown[i] !== which) group.innerHTML = data.strings[i][shown[i] = which];
      });
      tell(data.alts[row], data.lines[row]);
      mark(data.reached[row]);
    };
    const computed = () => {
      const params = {};
      controls.forEach((each, i) => {
        const value = each.get();
        params[data.names[i]] = typeof value === "number" ? data.values[i][value] : value;
      });
      let found;
      try { found = live.compute(params); } catch (error) {
        if (!(error instanceof RangeError)) throw error; // a sentence about what was entered
        problem.textContent = error.message;
        return;
      }
      live.parts(found, data.frames).forEach((part, i) => fill(data, groups[i], i, part));
      tell(live.alt(found), "");
    };

    const draw = live ? computed : fromGrid;
    controls.forEach((each, i) => box.querySelectorAll(".control")[i]
      .addEventListener("input", () => {
        moves += 1;
        draw(i);
        controls.forEach((one, k) => one.say(data.labels[k]));
      }));
    box.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
    box.addEventListener("rlnb:draw", () => draw(-1));
    // A browser that comes back to a page may have kept the controls where they were.
    draw(-1);
    controls.forEach((one, k) => one.say(data.labels[k]));
    new ResizeObserver(() => {
      if (view.scrollWidth > view.clientWidth + 1) view.tabIndex = 0;
      else view.removeAttribute("tabindex");
    }).observe(view);
    box.dataset.ready = "";
  };

  // One artist of a live explorer: its pattern, with the geometry of now. part: null is hidden;
  // {path} are points, {box} a rectangle, {marks} points with a marker each, {text, x}; `look`
  // chooses among several patterns.
  const fill = (data, group, i, part) => {
    const pattern = part ? data.strings[i][data.columns[i][part.look || 0]] : "";
    if (group.dataset.pattern !== pattern) {
      group.dataset.pattern = pattern;
      group.innerHTML = pattern;
    }
    if (!part) return;
    const place = (point) => `${point[0].toFixed(2)} ${point[1].toFixed(2)}`;
    if (part.text !== undefined) {
      const text = group.querySelector("text");
      text.textContent = part.text;
      if (part.x !== undefined) text.setAttribute("x", part.x.toFixed(2));
    } else if (part.marks) {
      const uses = [...group.querySelectorAll("use")];
      for (const extra of uses.slice(1)) extra.remove();
      const one = uses[0];
      one.style.display = part.marks.length ? "" : "none";
      part.marks.forEach((point, k) => {
        const use = k ? one.parentNode.appendChild(one.cloneNode()) : one;
        use.setAttribute("x", point[0].toFixed(2));
        use.setAttribute("y", point[1].toFixed(2));
      });
    } else {
      group.querySelector("path").setAttribute("d", `M${part.path.map(place).join("L")}` +
        (part.closed ? "Z" : ""));
    }
  };

  window.rlnbExplorer = async (id, packed) => {
    const box = document.getElementById(id);
    try {
      start(box, await unpack(packed));
    } catch (error) {
      box.querySelector(".controls").hidden = true;
      box.querySelector(".problem").textContent =
        "This browser cannot unpack the explorer; it moves in JupyterLab and in newer browsers.";
      throw error;
    }
  };
})();
