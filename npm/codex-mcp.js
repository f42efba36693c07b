#!/usr/bin/env node
// Starts the codex-mcp program of this system, which npm installs as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `@codexmcp/codex-mcp-${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "codex-mcp.exe" : "codex-mcp";

let program;
try {
  program = require.resolve(`${name}/${file}`);
} catch {
  console.error(`codex-mcp: the package ${name} is missing: it was left out (--no-optional), or there is none for this system.`);
  process.exit(1);
}

// The program has the client's pipes themselves: nothing that it reads or writes passes through here.
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });

// A terminal sends SIGINT to the program too, and a second one would mean more than the first.
const forwarded = process.platform === "win32" ? [] : process.stdin.isTTY ? ["SIGTERM"] : ["SIGTERM", "SIGHUP", "SIGINT"];
for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"]) {
  process.on(signal, () => {
    if (forwarded.includes(signal)) child.kill(signal);
  });
}

child.on("error", (err) => {
  console.error(`codex-mcp: cannot start ${program}: ${err.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  process.exitCode = signal ? 128 + constants.signals[signal] : code;
});
