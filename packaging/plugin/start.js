// Starts the npm package of the plugin's version in the client's working folder. It does not use npx: that obeys the
// .npmrc of the working folder, and searches node and sh in node_modules/.bin there and in the folders around it, even with
// --prefix. So a project could start its own program, outside of any sandbox and with the client's keys.
"use strict";

const { spawnSync } = require("node:child_process");
const { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } = require("node:fs");
const { isAbsolute, join } = require("node:path");

const { version } = require("./.claude-plugin/plugin.json");
const spec = `@codexmcp/codex-mcp@${version}`;

const data = process.env.CLAUDE_PLUGIN_DATA ?? "";
const kept = isAbsolute(data) ? data : __dirname; // an older Claude Code has no folder for it
const folder = join(kept, `npm-${version}`);
const launcher = join(folder, "node_modules", "@codexmcp", "codex-mcp", "codex-mcp.js");
if (!existsSync(launcher)) install();
require(launcher);

function install() {
  mkdirSync(kept, { recursive: true });
  const made = mkdtempSync(join(kept, "install-"));
  writeFileSync(join(made, "package.json"), "{}"); // so npm looks for no project around the folder
  const windows = process.platform === "win32";
  const words = ["install", "--ignore-scripts", "--no-audit", "--no-fund", spec];
  // The client reads standard output. Windows starts npm.cmd only with a shell.
  const npm = spawnSync(windows ? "npm.cmd" : "npm", words, { cwd: made, shell: windows, stdio: ["ignore", 2, 2] });
  if (npm.status === 0) {
    try {
      renameSync(made, folder);
    } catch (err) {
      if (!existsSync(launcher)) throw err; // else another client was first
    }
  }
  rmSync(made, { recursive: true, force: true });
  if (npm.status !== 0) {
    console.error(`codex-mcp: npm cannot install ${spec}: ${npm.error?.message ?? `status ${npm.status}`}`);
    process.exit(1);
  }
}
