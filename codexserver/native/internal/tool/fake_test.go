package tool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// host records events and questions, and answers every question in the same way.
type host struct {
	engine.DenyAll
	answer elicit.Decision
	inside bool // an approval of a command is one for the sandbox only

	mu    sync.Mutex
	trace []string
	all   []protocol.EventMsg
	about []approval.Subject // the questions
}

func (h *host) add(m protocol.EventMsg, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, m)
	if format != "" {
		h.trace = append(h.trace, fmt.Sprintf(format, args...))
	}
}

func (h *host) Emit(m protocol.EventMsg) {
	switch m := m.(type) {
	case protocol.ExecCommandBegin:
		h.add(m, "begin")
	case protocol.ExecCommandEnd:
		h.add(m, "end %d", m.ExitCode)
	case protocol.PatchApplyBegin:
		h.add(m, "patch begin auto=%t", m.AutoApproved)
	case protocol.PatchApplyEnd:
		h.add(m, "patch end %t", m.Success)
	case protocol.TurnDiff:
		h.add(m, "diff")
	case protocol.BackgroundEvent:
		if m.Refused != nil {
			h.add(m, "refused")
			return
		}
		h.add(m, "")
	default:
		h.add(m, "")
	}
}

func (h *host) EmitAs(_ string, m protocol.EventMsg) { h.Emit(m) }

func (h *host) Ask(ctx context.Context, s approval.Subject) elicit.Outcome {
	h.mu.Lock()
	h.about = append(h.about, s)
	h.mu.Unlock()
	switch s := s.(type) {
	case approval.Command:
		reason := ""
		if s.Reason != "" {
			reason = ": " + s.Reason
		}
		h.add(s.Event(), "ask%s", reason)
		return elicit.Outcome{Decision: h.answer, Confined: h.inside}
	case approval.Patch:
		h.add(s.Event(), "ask patch")
		if s.Cwd == "" || !s.Once {
			h.add(s.Event(), "without the folder, or for the session")
		}
		return elicit.Outcome{Decision: h.answer}
	}
	return h.DenyAll.Ask(ctx, s)
}

// asked returns the commands that were asked about.
func (h *host) asked() (all []approval.Command) {
	for _, s := range h.about {
		if c, ok := s.(approval.Command); ok {
			all = append(all, c)
		}
	}
	return all
}

func (h *host) steps() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.trace, ", ")
}

// fakeSandbox only claims to confine commands. It claims to have caused exit code 66.
type fakeSandbox struct {
	stops   int // another exit code that it claims to have caused; 0 for none
	host    *host
	missing error // the result of Confine
	forbid  error // what Do returns instead of running
	reads   atomic.Int32
	unread  error // what Read returns instead of running
	notes   []string
}

func (s *fakeSandbox) Confine(p protocol.SandboxPolicy, _ string, _ []string) (tool.Confinement, error) {
	if s.missing != nil {
		return nil, s.missing
	}
	return fakeConfinement{s, p}, nil
}

func (s *fakeSandbox) Roots(policy protocol.SandboxPolicy, cwd string, env []string) (box.Roots, error) {
	if errors.Is(s.missing, box.ErrReplaced) {
		return box.Roots{}, s.missing
	}
	return box.New(box.Options{}).Roots(policy, cwd, env)
}

func (s *fakeSandbox) Close() error { return nil }

func (s *fakeSandbox) Protected(roots []string) []string {
	return box.New(box.Options{}).Protected(roots)
}

type fakeConfinement struct {
	s      *fakeSandbox
	policy protocol.SandboxPolicy
}

func (fakeConfinement) Hosts() *box.Hosts { return nil }

func (c fakeConfinement) Apply(cmd *exec.Cmd) (string, error) {
	network := ""
	if c.policy.NetworkAccess {
		network = " with network"
	}
	c.s.host.add(nil, "confined to %s%s", c.policy.Mode, network)
	return "", nil
}

func (c fakeConfinement) Environ() []string { return []string{"CONFINED=1"} }

func (c fakeConfinement) Notes() []string { return c.s.notes }

func (c fakeConfinement) Do(f func() error) error {
	c.s.host.add(nil, "confined")
	if c.s.forbid != nil {
		return c.s.forbid
	}
	return f()
}

func (c fakeConfinement) Read(f func() error) error {
	if c.s.unread != nil {
		return c.s.unread
	}
	c.s.reads.Add(1)
	return f()
}

func (c fakeConfinement) Denied(r run.Result) string {
	if r.ExitCode == 66 || c.s.stops != 0 && r.ExitCode == c.s.stops {
		return "the sandbox stopped it"
	}
	return ""
}

func (s *fakeSandbox) Permitted(string, []string) *permission.Set { return nil }

func (s *fakeSandbox) Beyond(string, []string) (tool.Confinement, error) { return nil, nil }

func (c fakeConfinement) Forbidden(run.Result) string { return "" }

func (c fakeConfinement) ReadOnly() bool { return c.policy.Mode == protocol.SandboxReadOnly }

// processes starts the commands of all tests.
var processes run.Starter

func TestMain(m *testing.M) {
	box.Main()
	code := memdir.Run(m)
	if err := processes.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// newBox makes tools, by default on a system without a sandbox.
func newBox(o tool.Options) *tool.Toolbox {
	if o.Processes == nil {
		o.Processes = &processes
	}
	if o.Programs == nil {
		o.Programs = &box.Programs{}
	}
	if o.Sandbox == nil {
		o.Sandbox = &fakeSandbox{missing: box.ErrUnavailable}
	}
	return tool.New(o)
}

// turnOf begins a turn of new tools. The environment of commands is [environ] by default.
func turnOf(o tool.Options, h engine.Host, dir string, policy protocol.ApprovalPolicy, mode protocol.SandboxMode) *tool.Turn {
	if o.Environ == nil {
		o.Environ = environ
	}
	return newBox(o).Turn(tool.Context{
		Cwd: dir, ApprovalPolicy: policy, Host: h, SandboxPolicy: protocol.SandboxPolicy{Mode: mode, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true},
	})
}

// called makes a call that does not end the turn.
func called(t testing.TB, turn *tool.Turn, call tool.Call) tool.Result {
	t.Helper()
	res := must.Get(turn.Call(t.Context(), call))(t)
	return res
}

func shellCall(members string, argv ...string) tool.Call {
	quoted := make([]string, len(argv))
	for i, word := range argv {
		quoted[i] = fmt.Sprintf("%q", word)
	}
	return tool.Call{ID: "c1", Name: "shell", Arguments: `{"command":[` + strings.Join(quoted, ",") + `]` + members + `}`}
}

// fileCall returns the call of a file tool that does the same as a patch of one file, which adds
// it or changes its line one to two. Ok is false if there is none.
func fileCall(patch string) (call tool.Call, ok bool) {
	head, rest, _ := strings.Cut(strings.TrimPrefix(patch, "*** Begin Patch\n*** "), "\n")
	if strings.Contains(rest, "*** Update") || strings.Contains(rest, "*** Move") {
		return tool.Call{}, false
	}
	if path, ok := strings.CutPrefix(head, "Add File: "); ok {
		return tool.Call{ID: "c1", Name: "write", Arguments: fmt.Sprintf(`{"path":%q,"content":"x\n"}`, path)}, true
	}
	path, ok := strings.CutPrefix(head, "Update File: ")
	return tool.Call{ID: "c1", Name: "edit", Arguments: fmt.Sprintf(`{"path":%q,"old":"one","new":"two"}`, path)}, ok
}

// environ has no home, so that login shells read no profile of the user that runs the tests.
var environ = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent"}

// escalated are members of a call that asks to leave the sandbox.
const escalated = `,"with_escalated_permissions":true`
