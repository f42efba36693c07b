package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
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
	case "accept", "decline", "cancel", "each decision", "error", "two questions", "ten approvals":
		return "`--cli` has no elicitation and says so in its capabilities."
	case "cancel a call":
		return "`--cli` makes one call per process and leaves; it never sends `notifications/cancelled`."
	case "progress":
		return "`--cli` and `mcpdo` print the result and no progress."
	}
	return ""
}

func (c inspectorCLI) connect(_ context.Context, s setup, _ *witness) (session, error) {
	return &cliSession{s, c.era}, nil // which connects again for each command
}

type cliSession struct {
	setup setup
	era   string
}

func (s *cliSession) do(ctx context.Context, answer any, method string, more ...string) error {
	args := append([]string{"--cli", "--format", "json", "--quiet", "--protocol-era", s.era, "--cwd", s.setup.Cwd, "--method", method}, more...)
	return inspect(ctx, answer, "launcher/build/index.js", append(args, target(s.setup)...)...)
}

func (s *cliSession) close() error { return nil }

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
	asks := map[bool]string{false: "off", true: "form"}[s.Asks]
	name, err := mcpdo.connect(ctx, append([]string{"--era", c.era, "--elicit", asks, "--cwd", s.Cwd}, target(s)...)...)
	if err != nil {
		return nil, err
	}
	return &mcpdoSession{w, name}, nil
}

// mcpdo is the daemon of mcpdo, which has the connections of all tests.
var mcpdo daemon

type daemon struct {
	starting sync.Once
	started  bool
	last     atomic.Int64 // connection's number
}

// connect opens a connection and returns its name. The first one starts the daemon. Without connections
// the daemon ends after a minute: a connection that comes just then is refused, before a server starts,
// and asked for again.
func (d *daemon) connect(ctx context.Context, args ...string) (name string, err error) {
	name = fmt.Sprint("codex", d.last.Add(1))
	connect := func() {
		for range 5 {
			err = d.do(ctx, new(any), name, append([]string{"connect"}, args...)...)
			if err == nil || !strings.Contains(err.Error(), `"daemon_unreachable"`) && !strings.Contains(err.Error(), `"daemon_stopping"`) {
				return
			}
		}
	}
	first := false
	d.starting.Do(func() {
		first, d.started = true, true
		connect()
	})
	if !first {
		connect()
	}
	return name, err
}

// do runs a command on a connection.
func (d *daemon) do(ctx context.Context, answer any, name string, args ...string) error {
	return inspect(ctx, answer, "mcpdo/build/mcp-bin.js", append([]string{"--format", "json", "--connection", name}, args...)...)
}

// stop ends the daemon if a test started it.
func (d *daemon) stop() error {
	if !d.started {
		return nil
	}
	return d.do(context.Background(), new(any), "", "daemon", "stop")
}

type mcpdoSession struct {
	*witness
	name string
}

func (s *mcpdoSession) do(ctx context.Context, answer any, args ...string) error {
	return mcpdo.do(ctx, answer, s.name, args...)
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
		answer, known := map[string]string{"accept": "{}", "decline": "--decline", "cancel": "--cancel"}[action]
		if !known {
			answer = fmt.Sprintf(`{"decision":%q}`, action)
		}
		command = []string{"elicitation/respond", got.Pending.ElicitationID, answer}
	}
}

// close ends the connection, and with it a server that the daemon started.
func (s *mcpdoSession) close() error {
	return s.do(context.Background(), new(any), "disconnect", s.name)
}

// target is the server, as arguments of the Inspector.
func target(s setup) (args []string) {
	if s.URL != "" {
		return []string{"--transport", "http", "--server-url", s.URL, "--header", "Authorization: Bearer " + s.Token}
	}
	for _, e := range s.environment() {
		args = append(args, "-e", e)
	}
	return append(append(args, "--"), s.Command...)
}

// inspect runs a program of the Inspector and decodes the JSON that it prints.
func inspect(ctx context.Context, answer any, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, node(), append([]string{installed("@modelcontextprotocol", "inspector", "clients", program)}, args...)...)
	cmd.Env = []string{
		"PATH=" + filepath.Dir(node()) + ":" + os.Getenv("PATH"), "HOME=" + scratch, nodeCache + "=" + os.Getenv(nodeCache),
		"MCP_INSPECTOR_DAEMON_DIR=" + filepath.Join(scratch, "mcpdo"), "MCP_INSPECTOR_SECRET_STORE=memory",
	}
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
