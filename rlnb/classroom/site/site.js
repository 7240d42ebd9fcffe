// What a page does beyond lying there: theme, folds, guesses. Everything is readable without it.
(() => {
  "use strict";
  const root = document.documentElement;

  // The theme: the reader's system decides until the button is pressed. A browser that keeps
  // nothing for files forgets the choice with the page.
  const remembered = () => { try { return localStorage.getItem("rlnb-theme"); } catch { return null; } };
  const remember = (name) => { try { localStorage.setItem("rlnb-theme", name); } catch { /* as said */ } };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  if (["dark", "light"].includes(remembered())) root.dataset.theme = remembered();

  const theme = (button) => {
    const name = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
    button.setAttribute("title", "Change between a light and a dark page");
    button.hidden = false;
    name();
    system.addEventListener("change", name);
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      remember(root.dataset.theme);
      name();
    });
  };

  const folds = () => [...document.querySelectorAll("main details")];
  const unfold = (button) => {
    if (!folds().length) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-pressed") !== "true";
      for (const fold of folds()) fold.open = open;
      button.setAttribute("aria-pressed", String(open));
      button.textContent = open ? "Fold all" : "Unfold all";
    });
  };

  // On paper nothing can be unfolded; what was closed is closed again afterwards.
  let closed = [];
  const beforePrint = () => {
    closed = folds().filter((fold) => !fold.open);
    for (const fold of closed) fold.open = true;
  };
  const afterPrint = () => {
    for (const fold of closed) fold.open = false;
    closed = [];
  };

  // A link may lead into a fold.
  const openWay = () => {
    let name = "";
    try { name = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const target = name && document.getElementById(name);
    if (!target) return;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details"))
      fold.open = true;
    target.scrollIntoView();
  };

  // The options of a guess open its answer, wherever on the page it stands. One is pressed once.
  const guess = (box) => {
    const key = box.dataset.guess;
    const answers = document.querySelectorAll(`[data-answer~="${CSS.escape(key)}"]`);
    const list = box.querySelector(".options");
    if (!answers.length || !list) return;
    const said = document.createElement("p");
    said.className = "said";
    said.setAttribute("role", "status");
    // letter: of the option, whose reply in the answer is marked
    const opened = (words, letter) => {
      for (const answer of answers) answer.open = true;
      for (const reply of document.querySelectorAll(`[data-answer~="${CSS.escape(key)}"] li`))
        reply.classList.toggle("yours", reply.textContent.startsWith(`Had you said ${letter},`));
      const first = answers[0];
      first.id = first.id || `answer-${key}`;
      said.textContent = words;
      const way = document.createElement("a");
      way.href = `#${encodeURIComponent(first.id)}`;
      way.textContent = "The answer is open further down";
      said.append(" ", way, ".");
    };
    if (list.dataset.number) {
      const label = document.createElement("label"), field = document.createElement("input");
      const press = document.createElement("button");
      field.inputMode = "decimal";
      press.type = "button";
      press.textContent = "Open the answer";
      label.append("Your number: ", field);
      list.append(label, " ", press);
      press.addEventListener("click", () => {
        if (field.value.trim()) opened(`You said: ${field.value.trim()}.`);
        else said.textContent = "Write a number first; a wrong one costs nothing.";
      });
    } else {
      for (const item of list.querySelectorAll(":scope > li")) {
        const press = document.createElement("button");
        press.type = "button";
        press.setAttribute("aria-pressed", "false");
        press.append(...item.childNodes);
        item.append(press);
        press.addEventListener("click", () => {
          for (const other of list.querySelectorAll("button")) {
            other.setAttribute("aria-pressed", String(other === press));
            other.disabled = other !== press;
          }
          opened("Kept.", press.querySelector("strong")?.textContent);
        });
      }
    }
    box.append(said);
  };

  document.addEventListener("DOMContentLoaded", () => {
    theme(document.getElementById("theme"));
    unfold(document.getElementById("unfold"));
    for (const box of document.querySelectorAll(".guess")) guess(box);
    const contents = document.querySelector(".contents details");
    const wide = matchMedia("(min-width: 1180px)");
    const spread = () => { if (contents) contents.open = wide.matches; };
    spread();
    wide.addEventListener("change", spread);
    addEventListener("beforeprint", beforePrint);
    addEventListener("afterprint", afterPrint);
    addEventListener("hashchange", openWay);
    openWay();
    document.addEventListener("keydown", (event) => {
      const typing = event.target.closest("input, select, textarea");
      if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      document.querySelector("#words, .top input").focus();
    });
  });
})();
