package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// warn prints which flags have no effect and which overrides loosen the rules for
// commands. At a terminal it also prints what this program is.
func (c *configuration) warn(o *options, stderr io.Writer) {
	for _, w := range append(o.warnings, c.loosened()...) {
		fmt.Fprintln(stderr, "codex-mcp: warning:", w)
	}
	if err := c.exposed(); err != nil {
		fmt.Fprintln(stderr, "codex-mcp: warning:", err)
	}
	if terminal.IsTerminal(os.Stdin) {
		fmt.Fprintf(stderr, greeting, o.name)
	}
}

// exposed returns an error if other users may write or read what only this one may.
func (c *configuration) exposed() error {
	err := safefile.Exposed(runtime.GOOS, c.home)
	if err == nil {
		err = safefile.Exposed(runtime.GOOS, filepath.Join(c.home, "codex-mcp")) // rules
	}
	return err
}

const greeting = `codex-mcp is an MCP server: it waits for a client's JSON-RPC messages on standard input.
To run a task from this terminal:   %[1]s ask "why do the tests fail?"
To see it work without a key:       %[1]s ask --demo
To check whether tasks can run:     %[1]s doctor
To see how a client starts it:      %[1]s --help
`

// loosened returns a warning for each override that loosens the rules for commands in all
// conversations.
func (c *configuration) loosened() (all []string) {
	if c.overrides["approval_policy"] == string(protocol.ApprovalNever) {
		all = append(all, "approval_policy=never: commands run without a question, unless a call chooses another "+
			"policy")
	}
	if c.overrides["sandbox_mode"] == string(protocol.SandboxDangerFullAccess) {
		all = append(all, "sandbox_mode=danger-full-access: commands may touch everything, unless a call chooses "+
			"another mode")
	}
	return all
}
