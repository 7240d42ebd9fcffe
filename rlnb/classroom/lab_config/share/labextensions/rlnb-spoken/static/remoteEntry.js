// What JupyterLab leaves out for people who listen to a page: a picture's sentence as its alt text,
// a slider's name on its handle, which button is pressed, and changing lines as live regions.
// And pictures grow with the page's letters, so that a figure's words stay as large as the text's.
// Written by hand as the container of one module, so that nothing has to be compiled.
(() => {
  "use strict";

  const set = (node, name, value) => {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  };

  // Pictures are drawn for letters of 14 px, and are not squeezed below what can be read.
  const fit = (image) => {
    const drawn = Number(image.getAttribute("width"));
    if (!drawn) return;
    const letters = getComputedStyle(image.closest(".jp-Notebook") || document.body)
      .getPropertyValue("--jp-content-font-size1");
    const scale = Math.max(1, (parseFloat(letters) || 14) / 14);
    const width = `${Math.round(drawn * scale)}px`;
    if (image.style.width === width) return;
    image.style.width = width;
    image.style.height = "auto";
    image.style.minWidth = `${Math.min(drawn, 640)}px`;
  };

  // The sentence that came with a picture: metadata of its output.
  const pictures = (panel) => {
    for (const cell of panel.content.widgets) {
      const area = cell.outputArea;
      if (!area) continue;
      area.widgets.forEach((shown, i) => {
        const output = i < area.model.length ? area.model.get(i) : null;
        const said = output && output.metadata["image/png"] && output.metadata["image/png"].alt;
        if (!said) return;
        for (const image of shown.node.querySelectorAll(".jp-RenderedImage img")) {
          set(image, "alt", said);
          fit(image);
        }
      });
    }
  };

  const controls = (root) => {
    for (const row of root.querySelectorAll(".widget-inline-hbox")) {
      const label = row.querySelector(":scope > .widget-label");
      const name = label && label.textContent.trim();
      if (!name) continue;
      for (const handle of row.querySelectorAll(".noUi-handle")) set(handle, "aria-label", name);
      if (row.classList.contains("widget-toggle-buttons")) {
        set(row, "role", "group");
        set(row, "aria-label", name);
      }
    }
    for (const button of root.querySelectorAll(".widget-toggle-button"))
      set(button, "aria-pressed", String(button.classList.contains("mod-active")));
    for (const line of root.querySelectorAll(".rlnb-said")) set(line, "role", "status");
  };

  // A changing line wraps where the font is wide, instead of being cut; its tones are lightened
  // where the theme is dark.
  const DARK = '[data-jp-theme-light="false"] .rlnb-said';
  const style = document.createElement("style");
  style.textContent = `.rlnb-said.widget-label { height: auto !important; white-space: normal !important; }
${DARK}.rlnb-done { color: #3fcf9f !important; }
${DARK}.rlnb-wrong { color: #ff9d5c !important; }
${DARK}.rlnb-quiet { color: #c4c4c4 !important; }`;

  const activate = (app) => {
    document.head.append(style);
    let waiting = false;
    const look = () => {
      waiting = false;
      for (const panel of app.shell.widgets("main"))
        if (panel.content && panel.content.widgets) {
          pictures(panel);
          controls(panel.node);
        }
    };
    const soon = () => {
      if (waiting) return;
      waiting = true;
      setTimeout(look, 200);
    };
    new MutationObserver(soon).observe(document.body, { childList: true, subtree: true });
    for (const kind of ["click", "keyup"]) document.addEventListener(kind, soon, true);
  };

  const plugin = { id: "rlnb-spoken:plugin", autoStart: true, activate };
  const module = { __esModule: true, default: plugin };
  const all = (window._JUPYTERLAB = window._JUPYTERLAB || {});
  all["rlnb-spoken"] = { init: () => {}, get: async () => () => module };
})();
