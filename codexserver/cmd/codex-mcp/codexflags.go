package main

import (
	"fmt"

	"github.com/spf13/pflag"
)

// codexFlag is a flag of codex that this program does not have.
type codexFlag struct {
	name, short string
	value       bool // the flag takes a value
	// refused flags end the start, since without them the program would do something
	// else. Without the other flags it only does less, and starts with a warning.
	refused bool
	advice  string
}

// codexFlags are those of the codex that still had mcp-server, up to 0.153.4.
var codexFlags = []codexFlag{
	{name: "full-auto", refused: true, advice: "write --sandbox workspace-write --ask-for-approval on-request"},
	{name: "yolo", refused: true, advice: bypass},
	{name: "dangerously-bypass-approvals-and-sandbox", refused: true, advice: bypass},
	{name: "oss", refused: true, advice: "write -c model_provider=oss and the model's name after --model; without it " +
		"the task would go to the configured provider"},
	{name: "local-provider", value: true, refused: true,
		advice: "write -c model_provider=NAME with a provider of config.toml; oss is Ollama on this machine"},
	{name: "image", short: "i", value: true, refused: true,
		advice: "codex-mcp ask has it; a call of the tool codex names its images itself"},
	{name: "remote", value: true, refused: true, advice: "the server starts an app-server of its own"},

	{name: "search", advice: "write -c tools.web_search=true"},
	{name: "add-dir", value: true, advice: `write -c 'sandbox_workspace_write.writable_roots=["DIR"]'`},
	{name: "approve-for-me", advice: "the client answers questions; approvals.allow in codex-mcp.toml approves " +
		"commands without one"},
	{name: "dangerously-bypass-hook-trust", advice: "only hooks that Codex already trusts run"},
	{name: "no-alt-screen", advice: "this program draws no screen"},
}

const bypass = "write --sandbox danger-full-access --ask-for-approval never to run commands without questions and " +
	"without a sandbox"

// foreignFlags adds the flags of codex, hidden, and records the ones that are used.
func (o *options) foreignFlags(fs *pflag.FlagSet) {
	for _, f := range codexFlags {
		note := func(string) error {
			if f.refused {
				o.refusals = append(o.refusals, fmt.Sprintf("--%s is not a flag of this program: %s", f.name, f.advice))
			} else {
				o.warnings = append(o.warnings, fmt.Sprintf("--%s has no effect here: %s", f.name, f.advice))
			}
			return nil
		}
		if f.value {
			fs.FuncP(f.name, f.short, f.advice, note)
		} else {
			fs.BoolFuncP(f.name, f.short, f.advice, note)
		}
		fs.Lookup(f.name).Hidden = true
	}
}
