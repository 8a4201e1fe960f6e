// Applies the reader's choice of light or dark before the page is drawn. The choice is kept in this browser. Without it, or
// without this script, the system's setting applies.
"use strict";
(() => {
  const root = document.documentElement;
  const THEMES = { "": "As the system", light: "Light", dark: "Dark" };
  // A browser may refuse storage: the choice then lasts as long as the page.
  const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const store = (theme) => { try { localStorage.setItem("theme", theme); } catch { /* see above */ } };
  const apply = (theme) => {
    if (theme && theme in THEMES) root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  apply(stored());
  addEventListener("storage", (event) => { if (event.key === "theme") apply(event.newValue); });
  addEventListener("DOMContentLoaded", () => {
    for (const place of document.querySelectorAll(".theme")) {
      const label = document.createElement("label"), select = document.createElement("select");
      for (const [value, text] of Object.entries(THEMES)) select.add(new Option(text, value));
      select.value = root.dataset.theme ?? "";
      select.addEventListener("change", () => { store(select.value); apply(select.value); });
      label.append("Theme", select);
      place.append(label);
    }
  });
})();
