// Conveniences only: every page has the same content and functions without this script.
"use strict";
(() => {
  const root = document.documentElement;
  const texts = JSON.parse(root.dataset.texts);
  // Puts values into the places of a text.
  const filled = (text, values) => text.replace(/\{(\w+)\}/g, (place, name) => values[name]);
  root.classList.add("js");
  const offset = Date.parse(root.dataset.now) - Date.now();
  const now = () => Date.now() + offset;
  const live = document.getElementById("live");
  let spoken = 0;
  // At most one message in five seconds.
  const say = (text) => {
    if (!live || Date.now() - spoken < 5000) return;
    spoken = Date.now();
    live.textContent = text;
  };

  // Time left, by the server's clock, rounded down.
  const left = (ms) => {
    const s = Math.floor(ms / 1000), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
    if (d > 1) return filled(texts.days, { days: d });
    if (d === 1) return filled(texts.dayHours, { hours: h % 24 });
    if (h > 0) return filled(m % 60 > 0 ? texts.hoursMinutes : texts.hours, { hours: h, minutes: m % 60 });
    return filled(m >= 5 ? texts.minutes : m > 0 ? texts.minutesSeconds : texts.seconds, { minutes: m, seconds: s % 60 });
  };
  const count = () => {
    for (const time of document.querySelectorAll("time.left")) {
      const rest = Date.parse(time.dataset.until) - now();
      const text = rest > 0 ? filled(texts.ends, { span: left(rest) }) : texts.over;
      if (time.textContent !== text) time.textContent = text;
      time.classList.toggle("soon", rest < 5 * 60000);
    }
    for (const acts of document.querySelectorAll("[data-expires]")) {
      if (!acts.dataset.expires || acts.dataset.over || Date.parse(acts.dataset.expires) > now()) continue;
      acts.dataset.over = "yes";
      for (const button of acts.querySelectorAll("button, .button:not(.quiet)")) {
        button.setAttribute("aria-disabled", "true");
        if (button.tagName === "BUTTON") button.disabled = true;
        else button.removeAttribute("href");
      }
      const note = document.createElement("p");
      note.className = "note warn";
      note.textContent = texts.cannotDecide;
      acts.after(note);
      say(note.textContent);
    }
  };
  count();
  setInterval(count, 1000);

  // Times are shown in the browser's zone, with the time in UTC as their title.
  const parts = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit",
    hourCycle: "h23", timeZoneName: "short" };
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const localize = () => {
    if (!zone || /(^|\/)(UTC|UCT|GMT|Universal|Zulu)$/.test(zone)) return;
    for (const time of document.querySelectorAll("time[datetime]")) {
      const exact = / \d\d:\d\d(:\d\d)? UTC$/.exec(time.textContent);
      if (!exact) continue;
      const second = exact[1] ? "2-digit" : undefined;
      time.title = time.textContent;
      time.textContent = new Intl.DateTimeFormat("en-GB", { ...parts, second }).format(new Date(time.dateTime));
    }
    const note = document.getElementById("zone");
    if (note) note.textContent = filled(texts.localTimes, { zone });
  };
  localize();

  // A menu of the header is closed by Escape, by a click elsewhere, and once the focus leaves it.
  const menus = [...document.querySelectorAll(".top details")];
  for (const menu of menus) {
    menu.addEventListener("focusout", ({ relatedTarget }) => {
      if (relatedTarget && !menu.contains(relatedTarget)) menu.open = false;
    });
    menu.addEventListener("keydown", ({ key }) => {
      if (key !== "Escape" || !menu.open) return;
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  }
  addEventListener("click", ({ target }) => {
    for (const menu of menus) if (!menu.contains(target)) menu.open = false;
  });

  // Ids, secrets and commands can be copied.
  for (const source of document.querySelectorAll("[data-copy], .status > code.id")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = texts.copy;
    button.addEventListener("click", async () => {
      const done = await navigator.clipboard.writeText(source.textContent).then(() => true, () => false);
      button.textContent = done ? texts.copied : texts.copyByHand;
      say(button.textContent);
      if (!done) getSelection().selectAllChildren(source);
    });
    source.after(button);
  }

  // A form with `data-once` is sent only once.
  for (const form of document.querySelectorAll("form[data-once]")) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) return event.preventDefault();
      form.dataset.sent = "yes";
    });
  }
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-once]")) delete form.dataset.sent;
  });

  // A background request of the script. It does not keep the session alive.
  const LIVE = { credentials: "same-origin", redirect: "manual", headers: { "x-console-live": "1" } };

  // The end of the session is announced two minutes before, and can be delayed. The script asks the
  // service first: another tab may have used the session, or a person may have signed in again
  // there.
  let ends = Date.parse(root.dataset.sessionEnds), asked = 0;
  const heard = async (answer) => {
    if (answer.ok) ends = Date.parse(await answer.text());
    else if (answer.status === 401) ends = 0;
  };
  const note = document.createElement("div");
  note.className = "note warn ending";
  note.setAttribute("role", "status");
  const stay = document.createElement("button");
  stay.textContent = texts.stay;
  stay.addEventListener("click", async () => {
    await fetch("/console/session", { ...LIVE, headers: {} }).then(heard, () => {});
    show();
  });
  const show = () => {
    const rest = ends - now();
    if (rest > 120000) return note.remove();
    const words = rest > 0 ? `${texts.sessionEnds} ` : texts.sessionEnded;
    if (note.isConnected && note.firstChild.textContent === words) return;
    note.replaceChildren(words, ...(rest > 0 ? [stay] : []));
    document.body.append(note);
  };
  const ending = async () => {
    const rest = ends - now(), isFirst = rest <= 0 && note.textContent !== texts.sessionEnded;
    if (rest > 120000 || (note.isConnected && document.hidden)) return show();
    if (!isFirst && Date.now() - asked < 20000) return show();
    asked = Date.now();
    // Without a response, the state is unknown until the next response.
    await fetch("/console/session", LIVE).then(heard).then(show, () => {});
  };
  if (root.dataset.sessionEnds) setInterval(ending, 5000);

  // Parts of a page that change are reloaded in the background, unless a person is using them. A part
  // with a version is replaced only if its version changes.
  const inbox = document.getElementById("inbox"), changing = document.querySelector("[data-live]");
  const busy = () =>
    document.hidden || changing.querySelector(":checked") || changing.contains(document.activeElement);
  const stale = document.createElement("p");
  stale.className = "note warn";
  let missed = 0, newest = root.dataset.now;
  const warn = (text) => {
    if (!stale.isConnected) say(text);
    stale.textContent = text;
    changing.before(stale);
  };
  const miss = () => {
    missed += 1;
    if (missed > 1) warn(filled(texts.notUpToDate, { time: newest }));
  };
  const replace = (fresh, version) => {
    changing.replaceChildren(...fresh.childNodes);
    Object.assign(changing.dataset, fresh.dataset);
    if (version) say(filled(texts.nowInState, { state: changing.querySelector(".status .state").textContent }));
    count();
    localize();
  };
  const look = async () => {
    const version = changing.dataset.live;
    if (document.hidden || "final" in changing.dataset || (!version && busy())) return;
    try {
      const answer = await fetch(location.href, LIVE);
      if (answer.status === 401) {
        ends = 0;
        return show();
      }
      if (!answer.ok) return miss();
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      missed = 0;
      newest = page.documentElement.dataset.now;
      const fresh = page.querySelector("[data-live]"), counted = page.getElementById("count");
      const isSame = version ? fresh?.dataset.live === version : fresh?.innerHTML === changing.innerHTML;
      if (version && !isSame && busy()) return warn(texts.reload);
      stale.remove();
      if (!fresh || isSame || busy()) return;
      replace(fresh, version);
      const shown = document.getElementById("count");
      if (shown && shown.textContent !== counted.textContent) say(counted.textContent);
      if (shown) shown.textContent = counted.textContent;
    } catch {
      miss();
    }
  };
  if (changing) setInterval(look, 15000);

  // Keys: / for the search; j, k and Enter on the list; a and d on a request, for its second step. Keys
  // can be turned off.
  const off = () => localStorage.getItem("console-keys") === "off";
  const keys = document.querySelector("[data-keys-switch]");
  const label = () => { if (keys) keys.textContent = off() ? texts.keysOn : texts.keysOff; };
  if (keys) {
    label();
    keys.addEventListener("click", () => {
      localStorage.setItem("console-keys", off() ? "on" : "off");
      label();
    });
  }
  addEventListener("keydown", (event) => {
    if (off() || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea, [contenteditable]")) return;
    const find = document.querySelector(".whole input") || document.querySelector(".find input");
    if (event.key === "/" && find) {
      event.preventDefault();
      if (find.offsetParent) return find.focus();
      return location.assign("/console/search");
    }
    const opener = document.querySelector(`[data-key="${CSS.escape(event.key)}"][href]`);
    if (opener) {
      // The focus is then in the form: one Tab from there to the button.
      event.preventDefault();
      return location.assign(`${opener.href}#text`);
    }
    if (!inbox || (event.key !== "j" && event.key !== "k")) return;
    const links = [...inbox.querySelectorAll(".what")];
    const at = links.indexOf(document.activeElement);
    const next = links[Math.min(links.length - 1, Math.max(0, at + (event.key === "j" ? 1 : -1)))];
    if (next) next.focus();
  });
})();
