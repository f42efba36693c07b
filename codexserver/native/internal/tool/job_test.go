//go:build unix

package tool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// jobTurn begins a turn with the tools for commands in the background.
func jobTurn(t *testing.T, dir string, o tool.Options, policy protocol.ApprovalPolicy, mode protocol.SandboxMode) (*tool.Turn, *host) {
	t.Helper()
	h := &host{answer: elicit.Approved}
	o.Environ, o.FileTools = environ, true
	turn := newBox(o).Turn(tool.Context{Cwd: dir, ApprovalPolicy: policy, Host: h, SandboxPolicy: protocol.SandboxPolicy{Mode: mode}})
	t.Cleanup(turn.End)
	return turn, h
}

func output(t *testing.T, turn *tool.Turn, call tool.Call) string {
	t.Helper()
	res, err := turn.Call(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	return res.Output
}

func look(arguments string) tool.Call { return tool.Call{ID: "c2", Name: "job", Arguments: arguments} }

const background = `,"background":true`

// printed looks at a job, of which got is a report, until it has printed text.
func printed(t *testing.T, turn *tool.Turn, got, text string) string {
	t.Helper()
	id, _, _ := strings.Cut(got, " ")
	for !strings.Contains(got, text) {
		if !strings.HasPrefix(got, id+" still runs") {
			t.Fatalf("%q before %q", got, text)
		}
		got = output(t, turn, look(fmt.Sprintf(`{"id":%q,"wait_ms":20}`, id)))
	}
	return got
}

func TestCommandInTheBackground(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	turn, h := jobTurn(t, dir, tool.Options{}, "never", "danger-full-access")
	if got := output(t, turn, shellCall(t, background, "sh", "-c", "echo taken; exit 3")); !strings.HasPrefix(got, `{"output":"taken\n","metadata":{"exit_code":3,`) {
		t.Errorf("a command that ends at once: %q", got)
	}
	if got := output(t, turn, look(`{"id":"job1"}`)); !strings.Contains(got, `there is no "job1": no command of this turn`) {
		t.Errorf("before the first: %q", got)
	}
	turn.SetFirstLook(time.Millisecond)
	file := filepath.Join(dir, "go")
	first := output(t, turn, shellCall(t, background, "sh", "-c", "echo up; until [ -e go ]; do sleep 0.05; done; echo done; exit 4"))
	if first = printed(t, turn, first, "up\n"); timeless(first) != "job1 still runs after Ns; new output:\nup\n" {
		t.Errorf("the first look: %q", first)
	}
	printed(t, turn, output(t, turn, shellCall(t, background, "sh", "-c", "echo up; exec sleep 600")), "up\n")
	for _, tt := range []struct{ arguments, want string }{
		{`{"id":"job1","wait_ms":0}`, "job1 still runs after Ns; no new output\n"},
		{`{"id":"job2","wait_ms":0}`, "job2 still runs"},
		{`{"id":"job3"}`, "there is no \"job3\"; there are\njob1: sh -c "},
		{`{}`, "there is no \"\"; there are\njob1: sh -c "},
		{`{"id":1}`, "failed to parse function arguments: id: want a string"},
		{`{"id":"job2","end":true}`, "job2 was ended after Ns; no new output\n"},
		{`{"id":"job2","end":true}`, "job2 was ended after Ns; no new output\n"},
	} {
		if got := output(t, turn, look(tt.arguments)); !strings.HasPrefix(timeless(got), tt.want) {
			t.Errorf("%s: %q, want %q", tt.arguments, got, tt.want)
		}
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := output(t, turn, look(`{"id":"job1","wait_ms":60000}`)); !strings.Contains(got, "job1 has ended with exit code 4") || !strings.HasSuffix(got, "; new output:\ndone\n") {
		t.Errorf("the last look: %q", got)
	}
	if d := h.steps(); d != "begin, end 3, begin, begin, end 137, end 4" {
		t.Errorf("events %s", d)
	}
}

// hasty ends the turn at the first event.
type hasty struct {
	*host
	end func()
}

func (h hasty) Emit(m protocol.EventMsg) {
	h.end()
	h.host.Emit(m)
}

// TestJobEndedBeforeItBegins checks that a command that never ran does not seem to have succeeded.
func TestJobEndedBeforeItBegins(t *testing.T) {
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	h := hasty{&host{}, func() { cancel(why) }}
	turn := newBox(tool.Options{Environ: environ, FileTools: true}).Turn(tool.Context{
		Cwd: t.TempDir(), ApprovalPolicy: "never", Host: h, SandboxPolicy: protocol.SandboxPolicy{Mode: "danger-full-access"},
	})
	if res, err := turn.Call(ctx, shellCall(t, background, "true")); !errors.Is(err, why) {
		t.Errorf("%q, %v", res.Output, err)
	}
	turn.End() // waits for the last event
	if d := h.steps(); d != "begin, end -1" {
		t.Errorf("events %q", d)
	}
}

// timeless returns a report without its times.
func timeless(report string) string {
	return regexp.MustCompile(`\b[0-9ms]+s\b`).ReplaceAllString(report, "Ns")
}

// TestJobsEnd checks that commands in the background end with their turn or its context, with
// the daemons that they started, also outside of the sandbox.
func TestJobsEnd(t *testing.T) {
	t.Parallel()
	for _, interrupted := range []bool{false, true} {
		t.Run(fmt.Sprint("interrupted ", interrupted), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			turn, h := jobTurn(t, dir, tool.Options{}, "never", "danger-full-access")
			turn.SetFirstLook(time.Millisecond)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			res, err := turn.Call(ctx, shellCall(t, background, "sh", "-c", "sh -c 'trap true TERM HUP; while true; do sleep 1; done' & echo $! > daemon; echo $$ > main; echo up; exec sleep 901"))
			if err != nil {
				t.Fatal(err)
			}
			printed(t, turn, res.Output, "up\n")
			why := errors.New("interrupted")
			if interrupted {
				time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
				if _, err := turn.Call(ctx, look(`{"id":"job1","wait_ms":60000}`)); !errors.Is(err, why) {
					t.Errorf("a look of an interrupted turn: %v", err)
				}
			}
			turn.End()
			for _, name := range []string{"main", "daemon"} {
				text, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
				if err != nil {
					t.Fatal(err)
				}
				if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
					t.Errorf("the process %s is left: %v", name, err)
				}
			}
			if d := h.steps(); !strings.HasPrefix(d, "begin, end ") {
				t.Errorf("events %s", d)
			}
		})
	}
}

// TestBackgroundIsDecidedAlike checks that a command in the background is asked about, refused
// and confined like any other.
func TestBackgroundIsDecidedAlike(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		policy protocol.ApprovalPolicy
		answer elicit.Decision
		argv   []string
		steps  string
		want   string
	}{
		{"untrusted", elicit.Denied, []string{"sleep", "600"}, "ask", "the command was not run"},
		{"untrusted", elicit.Approved, []string{"sleep", "600"}, "ask, begin", "job1 still runs"},
		{"never", elicit.Approved, []string{"sh", "-c", "exit 66"}, "begin, confined to workspace-write, end 66", "exit_code\":66"},
		{"on-failure", elicit.Denied, []string{"sh", "-c", "exit 66"}, "begin, confined to workspace-write, end 66, ask: ", "the command was not run"},
		{"never", elicit.Approved, []string{"sh", "-c", "until [ -e go ]; do sleep 0.05; done; exit 66"}, "begin", "job1 still runs"},
	} {
		t.Run(fmt.Sprint(tt.policy, tt.answer, tt.argv), func(t *testing.T) {
			t.Parallel()
			s := &fakeSandbox{}
			turn, h := jobTurn(t, t.TempDir(), tool.Options{Sandbox: s}, tt.policy, "workspace-write")
			s.host, h.answer = h, tt.answer
			if strings.HasPrefix(tt.want, "job1") {
				turn.SetFirstLook(time.Millisecond)
			}
			call := shellCall(t, background, tt.argv...)
			if turn.Independent(call) {
				t.Error("it may run at the same time as other calls")
			}
			got := output(t, turn, call)
			if !strings.Contains(got, tt.want) || !strings.Contains(h.steps(), tt.steps) {
				t.Errorf("%q after %s", got, h.steps())
			}
			if len(tt.argv) == 3 && strings.HasPrefix(got, "job1") {
				if err := os.WriteFile(filepath.Join(turn.Cwd, "go"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				if got := output(t, turn, look(`{"id":"job1","wait_ms":60000}`)); !strings.Contains(got, "exit code 66 after") || !strings.Contains(got, "(the sandbox stopped it)") {
					t.Errorf("the sandbox stopped it later: %q", got)
				}
			}
		})
	}
}

func TestManyJobs(t *testing.T) {
	t.Parallel()
	turn, h := jobTurn(t, t.TempDir(), tool.Options{}, "never", "danger-full-access")
	turn.SetFirstLook(time.Millisecond)
	calls := make(chan string)
	for range 8 {
		go func() {
			res, err := turn.Call(t.Context(), shellCall(t, background, "sleep", "600"))
			calls <- fmt.Sprint(res.Output, err)
		}()
	}
	for range 8 {
		if got := <-calls; !strings.Contains(got, "still runs") {
			t.Error(got)
		}
	}
	if got := output(t, turn, shellCall(t, background, "echo", "nine")); !strings.Contains(got, "not run: 8 commands go on in the background") {
		t.Errorf("the ninth: %q", got)
	}
	if strings.Count(h.steps(), "begin") != 8 {
		t.Error(h.steps())
	}
	output(t, turn, look(`{"id":"job5","end":true}`))
	turn.SetFirstLook(time.Minute)
	if got := output(t, turn, shellCall(t, background, "echo", "nine")); !strings.Contains(got, "nine") {
		t.Errorf("after the end of one: %q", got)
	}
}

// TestFloodInTheBackground checks that the output of a look is bounded, and that nothing of the
// end is lost.
func TestFloodInTheBackground(t *testing.T) {
	t.Parallel()
	turn, _ := jobTurn(t, t.TempDir(), tool.Options{}, "never", "danger-full-access")
	turn.SetFirstLook(time.Millisecond)
	got := output(t, turn, shellCall(t, background, "sh", "-c", "yes | head -c 3000000; until [ -e go ]; do sleep 0.05; done; echo last"))
	for !strings.Contains(got, "prints so much") {
		if len(got) > 12<<10 {
			t.Fatalf("%d bytes: %.200s", len(got), got)
		}
		got = output(t, turn, look(`{"id":"job1","wait_ms":100}`))
	}
	if err := os.WriteFile(filepath.Join(turn.Cwd, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got = output(t, turn, look(`{"id":"job1","wait_ms":60000}`))
	if len(got) > 12<<10 || !strings.HasSuffix(strings.TrimSpace(got), "last") {
		t.Errorf("%d bytes: %.200s … %s", len(got), got, got[max(0, len(got)-50):])
	}
}

// TestNoBackgroundWithoutTheTool checks that a command ends before its call where the model has
// no tool to look at it.
func TestNoBackgroundWithoutTheTool(t *testing.T) {
	t.Parallel()
	turn, h := begin(t, t.TempDir())
	if got := output(t, turn, shellCall(t, background+`,"timeout_ms":100`, "sleep", "600")); !strings.Contains(got, "timed out") {
		t.Errorf("%q after %s", got, h.steps())
	}
	if got := output(t, turn, look(`{"id":"job1"}`)); !strings.HasPrefix(got, "unsupported call") {
		t.Error(got)
	}
}
