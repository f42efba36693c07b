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

// The Inspector has two modes for scripts: --cli, where each command starts a server of
// its own, and mcpdo, which keeps connections open in a daemon. Both speak the era that
// an option sets.

// inspectorCLI is the Inspector's mode --cli.
type inspectorCLI struct{ era string }

func (inspectorCLI) release(t *testing.T) string {
	return npmRelease(t, "@modelcontextprotocol/inspector")
}

func (inspectorCLI) cannot(cell string, _ way) string {
	switch cell {
	case "accept", "decline", "cancel", "error", "two questions", "ten approvals":
		return "`--cli` has no elicitation and says so in its capabilities."
	case "cancel a call":
		return "`--cli` makes one call per process and leaves; it never sends `notifications/cancelled`."
	case "progress":
		return "`--cli` and `mcpdo` print the result and no progress."
	}
	return ""
}

func (c inspectorCLI) connect(_ context.Context, s setup, _ *witness) (session, error) {
	i, err := newInspector(s)
	if err != nil {
		return nil, err
	}
	return &cliSession{i, c.era}, nil // which connects again for each command
}

type cliSession struct {
	*inspector
	era string
}

func (s *cliSession) do(ctx context.Context, answer any, method string, more ...string) error {
	args := append([]string{"--cli", "--format", "json", "--quiet", "--protocol-era", s.era, "--cwd", s.setup.Cwd, "--method", method}, more...)
	return s.run(ctx, answer, "launcher/build/index.js", append(args, s.target()...)...)
}

func (s *cliSession) list(ctx context.Context) ([]string, error) {
	var list struct{ Result toolList }
	err := s.do(ctx, &list, "tools/list")
	return list.Result.names(), err
}

func (s *cliSession) call(ctx context.Context, c call) (result, error) {
	arguments, err := json.Marshal(c.Arguments)
	if err != nil {
		return result{}, err
	}
	var got struct{ Result result }
	err = s.do(ctx, &got, "tools/call", "--tool-name", c.Tool, "--tool-args-json", string(arguments))
	return got.Result, err
}

// inspectorMcpdo is the Inspector's program mcpdo.
type inspectorMcpdo struct{ era string }

func (inspectorMcpdo) release(t *testing.T) string { return inspectorCLI{}.release(t) }

func (c inspectorMcpdo) cannot(cell string, over way) string {
	switch {
	case cell == "error":
		return "`mcpdo` answers with accept, decline or cancel, never with an error."
	case cell == "two questions" && c.era == "legacy":
		return "With the handshake `mcpdo` never shows a question that comes between two of its calls."
	case cell == "cancel a call":
		return "`mcpdo` cancels only calls that were begun on a terminal."
	case cell == "progress":
		return inspectorCLI{}.cannot(cell, over)
	}
	return ""
}

func (c inspectorMcpdo) connect(ctx context.Context, s setup, w *witness) (session, error) {
	i, err := newInspector(s)
	if err != nil {
		return nil, err
	}
	mcpdo := &mcpdoSession{inspector: i, witness: w}
	asks := map[bool]string{false: "off", true: "form"}[s.Asks]
	arguments := []string{"connect", "--era", c.era, "--elicit", asks, "--cwd", s.Cwd}
	if err := mcpdo.do(ctx, new(any), append(arguments, i.target()...)...); err != nil {
		return nil, errors.Join(err, mcpdo.close())
	}
	return mcpdo, nil
}

type mcpdoSession struct {
	*inspector
	*witness
}

func (s *mcpdoSession) do(ctx context.Context, answer any, args ...string) error {
	return s.run(ctx, answer, "mcpdo/build/mcp-bin.js", append([]string{"--format", "json", "--connection", "codex"}, args...)...)
}

func (s *mcpdoSession) list(ctx context.Context) ([]string, error) {
	var list toolList
	err := s.do(ctx, &list, "tools/list")
	return list.names(), err
}

func (s *mcpdoSession) call(ctx context.Context, c call) (result, error) {
	arguments, err := json.Marshal(c.Arguments)
	if err != nil {
		return result{}, err
	}
	command := []string{"tools/call", c.Tool, string(arguments)}
	for {
		var got struct {
			result
			Pending *struct{ ElicitationID, Message string } `json:"elicitationPending"`
		}
		if err := s.do(ctx, &got, command...); err != nil || got.Pending == nil {
			return got.result, err
		}
		action, err := s.elicit(ctx, got.Pending.Message)
		if err != nil {
			return result{}, err
		}
		answer := map[string]string{"accept": "{}", "decline": "--decline", "cancel": "--cancel"}[action]
		command = []string{"elicitation/respond", got.Pending.ElicitationID, answer}
	}
}

// close ends the daemon, and with it the server.
func (s *mcpdoSession) close() error {
	ctx := context.Background()
	return errors.Join(s.do(ctx, new(any), "disconnect", "codex"), s.do(ctx, new(any), "daemon", "stop"), s.inspector.close())
}

// inspector is an Inspector with a home of its own.
type inspector struct {
	setup setup
	home  string
	env   []string
}

func newInspector(s setup) (*inspector, error) {
	// The daemon's socket is in there: a path in a test's folder might be too long.
	home, err := os.MkdirTemp("", "inspector")
	if err != nil {
		return nil, err
	}
	return &inspector{s, home, []string{
		"PATH=" + filepath.Dir(node()) + ":" + os.Getenv("PATH"), "HOME=" + home,
		"MCP_INSPECTOR_DAEMON_DIR=" + home, "MCP_INSPECTOR_SECRET_STORE=memory",
	}}, nil
}

func (i *inspector) close() error { return os.RemoveAll(i.home) }

// target is the server, as arguments of the Inspector.
func (i *inspector) target() (args []string) {
	if i.setup.URL != "" {
		return []string{"--transport", "http", "--server-url", i.setup.URL, "--header", "Authorization: Bearer " + i.setup.Token}
	}
	for _, e := range i.setup.environment() {
		args = append(args, "-e", e)
	}
	return append(append(args, "--"), i.setup.Command...)
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
