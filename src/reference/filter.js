// Filters the list of operations. Without this script all operations are shown.
"use strict";
(() => {
  const form = document.getElementById("filter"), found = document.getElementById("found");
  const field = form.elements.q;
  const lower = (element) => element.textContent.toLowerCase();
  const groups = [...document.querySelectorAll("main section")].map((section) => {
    const heading = section.querySelector("h2");
    const entries = [...section.querySelectorAll(".operations li")];
    return {
      section,
      link: document.querySelector(`nav a[href="#${CSS.escape(heading.id)}"]`).closest("li"),
      // An operation is found by its service, method, path, name and summary.
      entries: entries.map((entry) => ({ entry, text: `${lower(heading)} ${entry.id.toLowerCase()} ${lower(entry)}` })),
    };
  });
  const all = groups.reduce((sum, group) => sum + group.entries.length, 0);

  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { section, link, entries } of groups) {
      let some = false;
      for (const { entry, text } of entries) {
        entry.hidden = !words.every((word) => text.includes(word));
        if (entry.hidden) continue;
        some = true;
        count += 1;
      }
      section.hidden = link.hidden = !some;
    }
    found.textContent = words.length === 0 ? `${all} operations` : count === 0
      ? "No operation has all of these words." : `${count} of ${all} operations`;
  };

  // The filter is kept in the address, to make it shareable.
  const remember = () => {
    const text = field.value.trim();
    const query = text === "" ? "" : `?q=${encodeURIComponent(text)}`;
    history.replaceState(null, "", `${location.pathname}${query}${location.hash}`);
  };

  field.value = new URLSearchParams(location.search).get("q") ?? "";
  form.hidden = false;
  filter();
  field.addEventListener("input", () => {
    filter();
    remember();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  // A link to a filtered-out operation clears the filter.
  addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target || !target.closest("[hidden]")) return;
    field.value = "";
    filter();
    remember();
    target.scrollIntoView();
  });
})();
