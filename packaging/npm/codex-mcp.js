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
  console.error(`codex-mcp: the package ${name} is missing. Install again without --no-optional; if it does not exist, this system is not supported.`);
  process.exit(1);
}

// The program uses the client's pipes directly: nothing that it reads or writes passes through here.
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });

// A terminal also sends SIGINT to the program, which would treat a second SIGINT differently.
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
