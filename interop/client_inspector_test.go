package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The Inspector has two modes for scripts: --cli, where each command starts a
// server of its own, and mcpdo, which keeps connections open in a daemon.

// inspectorCLI is the Inspector's mode --cli.
type inspectorCLI struct{}

func (inspectorCLI) release(t *testing.T) string {
	return npmRelease(t, "@modelcontextprotocol/inspector")
}

func (inspectorCLI) cannot(cell string) string {
	switch cell {
	case "accept", "decline", "cancel", "error":
		return "`--cli` has no elicitation and says so in its capabilities."
	case "cancel a call":
		return "`--cli` makes one call per process and leaves; it never sends `notifications/cancelled`."
	case "progress seen":
		return "`--cli` and `mcpdo` print the result and no progress."
	}
	return ""
}

func (inspectorCLI) play(ctx context.Context, s script, _ <-chan struct{}) (r report, err error) {
	i, err := newInspector(s)
	if err != nil {
		return r, err
	}
	defer i.remove()
	cli := func(answer any, method string, more ...string) error {
		args := append([]string{"--cli", "--format", "json", "--quiet", "--cwd", s.Cwd, "--method", method}, more...)
		return i.run(ctx, answer, "launcher/build/index.js", append(args, i.target(s)...)...)
	}
	var met struct {
		Result struct{ ServerInfo struct{ Name string } }
	}
	if err := cli(&met, "initialize"); err != nil {
		return r, err
	}
	r.Server = met.Result.ServerInfo.Name
	if s.List {
		var list struct{ Result toolList }
		if err := cli(&list, "tools/list"); err != nil {
			return r, err
		}
		r.Tools = list.Result.names()
	}
	threadID := ""
	for _, c := range s.Calls {
		arguments, err := json.Marshal(c.arguments(threadID))
		if err != nil {
			return r, err
		}
		var got struct{ Result toolResult }
		if err := cli(&got, "tools/call", "--tool-name", c.Tool, "--tool-args-json", string(arguments)); err != nil {
			return r, err
		}
		threadID = got.Result.Structured.ThreadID
		r.Results = append(r.Results, got.Result.report())
	}
	return r, nil
}

// inspectorMcpdo is the Inspector's program mcpdo.
type inspectorMcpdo struct{}

func (inspectorMcpdo) release(t *testing.T) string { return inspectorCLI{}.release(t) }

func (inspectorMcpdo) cannot(cell string) string {
	switch cell {
	case "error":
		return "`mcpdo` answers with accept, decline or cancel, never with an error."
	case "cancel a call":
		return "`mcpdo` cancels only calls that were begun on a terminal."
	case "progress seen":
		return inspectorCLI{}.cannot(cell)
	}
	return ""
}

func (inspectorMcpdo) play(ctx context.Context, s script, _ <-chan struct{}) (r report, err error) {
	i, err := newInspector(s)
	if err != nil {
		return r, err
	}
	defer i.remove()
	mcpdo := func(answer any, args ...string) error {
		return i.run(ctx, answer, "mcpdo/build/mcp-bin.js", append([]string{"--format", "json", "--connection", "codex"}, args...)...)
	}
	asks := map[bool]string{false: "off", true: "form"}[s.Answer != ""]
	// Whatever happens, the daemon has to end, and with it the server.
	defer func() {
		ctx = context.WithoutCancel(ctx)
		err = errors.Join(err, mcpdo(new(any), "disconnect", "codex"), mcpdo(new(any), "daemon", "stop"))
	}()
	if err := mcpdo(new(any), append([]string{"connect", "--elicit", asks, "--cwd", s.Cwd}, i.target(s)...)...); err != nil {
		return r, err
	}
	var met struct{ ServerInfo struct{ Name string } }
	if err := mcpdo(&met, "connections/show"); err != nil {
		return r, err
	}
	r.Server = met.ServerInfo.Name
	if s.List {
		var list toolList
		if err := mcpdo(&list, "tools/list"); err != nil {
			return r, err
		}
		r.Tools = list.names()
	}
	threadID := ""
	for _, c := range s.Calls {
		arguments, err := json.Marshal(c.arguments(threadID))
		if err != nil {
			return r, err
		}
		command := []string{"tools/call", c.Tool, string(arguments)}
		for {
			var got struct {
				toolResult
				Pending *struct{ ElicitationID, Message string } `json:"elicitationPending"`
			}
			if err := mcpdo(&got, command...); err != nil {
				return r, err
			}
			if got.Pending == nil {
				threadID = got.Structured.ThreadID
				r.Results = append(r.Results, got.report())
				break
			}
			r.Asked = append(r.Asked, got.Pending.Message)
			answer := map[string]string{"accept": "{}", "decline": "--decline", "cancel": "--cancel"}[s.Answer]
			command = []string{"elicitation/respond", got.Pending.ElicitationID, answer}
		}
	}
	return r, nil
}

// inspector is an Inspector with a home of its own.
type inspector struct {
	home string
	env  []string
}

func newInspector(s script) (*inspector, error) {
	// The daemon's socket is in there: a path in a test's folder might be too long.
	home, err := os.MkdirTemp("", "inspector")
	if err != nil {
		return nil, err
	}
	return &inspector{home, []string{
		"PATH=" + filepath.Dir(node()) + ":" + os.Getenv("PATH"), "HOME=" + home,
		"MCP_INSPECTOR_DAEMON_DIR=" + home, "MCP_INSPECTOR_SECRET_STORE=memory",
	}}, nil
}

func (i *inspector) remove() { _ = os.RemoveAll(i.home) } // in the system's folder for such

// target is the server, as arguments of the Inspector.
func (i *inspector) target(s script) (args []string) {
	for _, e := range s.environment() {
		args = append(args, "-e", e)
	}
	return append(append(args, "--"), s.Command...)
}

// run runs a program of the Inspector and decodes the JSON that it prints.
func (i *inspector) run(ctx context.Context, answer any, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, node(), append([]string{installed("@modelcontextprotocol", "inspector", "clients", program)}, args...)...)
	cmd.Env = i.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// A result with isError is printed and makes the exit status another than 0.
	if err := cmd.Run(); err != nil && stdout.Len() == 0 {
		return fmt.Errorf("%q: %w\n%s", args, err, stderr.Bytes())
	}
	if err := json.Unmarshal(stdout.Bytes(), answer); err != nil {
		return fmt.Errorf("%q printed %s: %w", args, stdout.Bytes(), err)
	}
	return nil
}

type toolList struct{ Tools []struct{ Name string } }

func (l toolList) names() (names []string) {
	for _, tool := range l.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func (r toolResult) report() result {
	got := result{IsError: r.IsError, ThreadID: r.Structured.ThreadID}
	for _, block := range r.Content {
		got.Text = append(got.Text, block.Text)
	}
	return got
}
