package tool_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/nightly"
)

// server is a server with a conversation of a hostile model and a person who answers anything. Two of them
// have one home.
type server struct {
	t     *testing.T
	r     *rand.Rand
	board *approve.Board
	box   *tool.Toolbox
	turn  *tool.Turn

	dir      string
	sandbox  *fakeSandbox                  // sometimes there is none
	stops    bool                          // the sandbox stops what runs in it
	approved *protocol.ExecApprovalRequest // what a person approved for a run outside in this call, and has not run
	outside  int                           // runs outside
	inside   int
	trace    []string
}

func newServer(t *testing.T, r *rand.Rand, home, dir string) *server {
	s := &server{t: t, r: r, dir: dir, sandbox: &fakeSandbox{host: &host{}}}
	o := &approve.Options{Kept: rulefile.New(home, nil)}
	if r.IntN(2) == 0 {
		o.Rules = approval.Rules{Allow: []approval.Rule{{Command: []string{"make"}}, {Command: []string{"./x"}}}, Ask: [][]string{{"git", "push"}}}
	}
	s.board = approve.New(o, nil)
	s.board.Attach(&approve.Place{Ask: s.answer})
	s.box = newBox(tool.Options{Environ: environ, Sandbox: s.sandbox, Processes: s, Ask: o.Rules.Ask})
	return s
}

func (s *server) note(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf(format, args...))
}

// answer answers a question: also with what it does not offer.
func (s *server) answer(_ context.Context, r *approval.Request) (elicit.Outcome, error) {
	all := []elicit.Decision{elicit.Approved, elicit.ApprovedForSession, elicit.ApprovedForSession, elicit.ApprovedAlways, elicit.Denied}
	out := elicit.Outcome{Decision: all[s.r.IntN(len(all))]}
	if out.Decision == elicit.ApprovedAlways && r.Question.Always == nil && s.r.IntN(4) > 0 {
		out.Decision = elicit.ApprovedForSession
	}
	s.note("a person answers %s", out.Decision)
	return out, nil
}

// hostOf is the host of a server's turns.
type hostOf struct {
	host
	*server
}

func (h *hostOf) ApproveExec(ctx context.Context, q protocol.ExecApprovalRequest) elicit.Outcome {
	s := h.server
	s.note("asked about %q in %s, outside %t, once %t", q.Command, q.Cwd, q.LeavesSandbox, q.Once)
	if full := s.turn.SandboxPolicy.Mode == protocol.SandboxDangerFullAccess; !q.Once && !q.Confinable && !full {
		s.t.Errorf("a session is offered that would let it out again:\n%s", strings.Join(s.trace, "\n"))
	}
	r := &approval.Request{Thread: approval.Thread{ID: "t"}, Event: q, Question: &elicit.Question{Once: q.Once}}
	r.Question.Always = s.board.Offer(r)
	d := s.board.Decide(ctx, r, false)
	if d.By != approval.ByRule && d.Decision.Approves() && !d.Confined && q.LeavesSandbox {
		s.approved = &q
	}
	s.note("decided %s by %s, confined %t", d.Decision, d.By, d.Confined)
	return d.Outcome
}

func (h *hostOf) ApprovePatch(context.Context, protocol.PatchApprovalRequest) elicit.Outcome {
	return elicit.Outcome{Decision: elicit.Approved}
}

// Run implements [tool.Runner]. It starts nothing, and checks that a run outside the sandbox has a question of
// its own.
func (s *server) Run(_ context.Context, spec run.Spec, _ func(protocol.OutputStream, []byte)) (run.Result, error) {
	s.note("runs %q in %s, confined %t", spec.Argv, spec.Dir, spec.Confinement != nil)
	if spec.Confinement != nil {
		s.inside++
		if s.stops {
			return run.Result{ExitCode: 66}, nil
		}
		return run.Result{ExitCode: s.r.IntN(2)}, nil
	}
	if s.turn.SandboxPolicy.Mode == protocol.SandboxDangerFullAccess {
		return run.Result{}, nil
	}
	s.outside++
	if q := s.approved; q == nil || !slices.Equal(q.Command, spec.Argv) || q.Cwd != spec.Dir {
		s.t.Errorf("it left the sandbox without a question of its own:\n%s", strings.Join(s.trace, "\n"))
	}
	s.approved = nil
	return run.Result{ExitCode: s.r.IntN(2)}, nil
}

// step is one call of the model.
func (s *server) step() {
	modes, policies := protocol.SandboxModes(), protocol.ApprovalPolicies()
	if s.turn == nil || s.r.IntN(6) == 0 {
		p := protocol.SandboxPolicy{Mode: modes[s.r.IntN(len(modes))], ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}
		s.turn = s.box.Turn(tool.Context{Cwd: s.dir, ApprovalPolicy: policies[s.r.IntN(len(policies))], SandboxPolicy: p, Host: &hostOf{server: s}})
		s.note("a turn with %s, %s", s.turn.ApprovalPolicy, p.Mode)
	}
	s.approved, s.sandbox.missing = nil, nil
	if s.r.IntN(8) == 0 {
		s.sandbox.missing = box.ErrUnavailable
	}
	s.stops = s.r.IntN(3) == 0
	call := shellCall("", "apply_patch", fmt.Sprintf("*** Begin Patch\n*** Add File: f%d\n+x\n*** End Patch", s.r.IntN(1<<30)))
	if s.r.IntN(8) > 0 {
		commands := [][]string{
			{"make"}, {"./x"}, {"touch", "a"}, {"git", "push"}, {"ls"}, {"bash", "-lc", "make && ./x"}, {"bash", "-lc", "make && touch a"}, {"env", "git", "push"},
		}
		members := ""
		if s.r.IntN(3) == 0 {
			members += `,"workdir":"sub"`
		}
		if s.r.IntN(4) == 0 {
			members += escalated
		}
		call = shellCall(members, commands[s.r.IntN(len(commands))]...)
	}
	s.note("calls %s", call.Arguments)
	var abort *engine.AbortError
	if _, err := s.turn.Call(s.t.Context(), call); err != nil && !errors.As(err, &abort) {
		s.t.Fatal(err)
	}
}

// TestNothingLeavesUnasked plays conversations of two servers with one home, in which a hostile model calls and
// a person approves once, for the session and always, or denies. No command runs outside the sandbox without a
// question of its own.
func TestNothingLeavesUnasked(t *testing.T) {
	conversations := nightly.Number(100, 1000)
	inside, outside := 0, 0
	home, dir := "", ""
	for seed := range conversations {
		if seed%25 == 0 {
			home = t.TempDir()
			dir = filepath.Join(home, "work")
			boxtest.Lay(t, dir, "sub/")
		}
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		servers := []*server{newServer(t, r, home, dir), newServer(t, r, home, dir)}
		for range 30 {
			servers[r.IntN(2)].step()
		}
		for _, s := range servers {
			inside, outside = inside+s.inside, outside+s.outside
		}
		if t.Failed() {
			t.Fatalf("conversation %d", seed)
		}
	}
	if inside < conversations || outside < conversations {
		t.Errorf("%d commands ran in the sandbox, and %d outside: they show nothing", inside, outside)
	}
}
