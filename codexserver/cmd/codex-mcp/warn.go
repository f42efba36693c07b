package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"golang.org/x/term"
)

// warn says what the command line asks for and does not get, what it loosens,
// and, to a person at a terminal, what this program is.
func (c *configuration) warn(o *options, stderr io.Writer) {
	for _, w := range append(o.warnings, c.loosened()...) {
		fmt.Fprintln(stderr, "codex-mcp: warning:", w)
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		fmt.Fprintf(stderr, greeting, o.name)
	}
}

const greeting = `codex-mcp is an MCP server: it waits for a client's JSON-RPC messages on standard input.
To hand over a task from here:      %[1]s ask "why do the tests fail?"
To see whether tasks can run:       %[1]s doctor
To see how a client starts it:      %[1]s --help
`

// loosened is what the command line's overrides allow to every conversation.
func (c *configuration) loosened() (all []string) {
	if c.overrides["approval_policy"] == string(protocol.ApprovalNever) {
		all = append(all, "approval_policy=never: no conversation asks before a command runs, unless its call chooses another policy")
	}
	if c.overrides["sandbox_mode"] == string(protocol.SandboxDangerFullAccess) {
		all = append(all, "sandbox_mode=danger-full-access: commands may touch everything, unless a call chooses another mode")
	}
	return all
}

// features are the features of Codex that the command line switches, sorted.
func (c *configuration) features() []string {
	table, _ := c.overrides["features"].(map[string]any)
	return slices.Sorted(maps.Keys(table))
}
