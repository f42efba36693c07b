//go:build realcodex && unix

package appserver_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// soon bounds what takes milliseconds on an idle machine. Exact times are in failure_test.go.
const soon = 10 * time.Second

// within runs f and fails when it does not end soon.
func within(t *testing.T, f func()) {
	t.Helper()
	begun := time.Now()
	f()
	if took := time.Since(begun); took > soon {
		t.Errorf("took %v, more than %v", took, soon)
	}
}

// processes returns the live processes of this Codex, by /proc, whose command line has a text.
func (r *real) processes(t *testing.T, part string) []string {
	t.Helper()
	var found []string
	dirs := must.Get(filepath.Glob("/proc/[0-9]*"))(t)
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ")
		if err == nil && strings.Contains(string(env), "CODEX_HOME="+r.home+"\x00") {
			if name, _ := os.ReadFile(dir + "/cmdline"); strings.Contains(string(name), part) {
				found = append(found, filepath.Base(dir)+" "+string(name))
			}
		}
	}
	return found
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if pid == 0 {
		t.Fatal("no process")
	}
	must.OK(t, syscall.Kill(pid, syscall.SIGKILL))
}

// held begins a turn of the real Codex that waits for the model, a command or a person, as at says, and returns the
// channel of its end and what interrupts it. The rest is what the model answers later.
func held(t *testing.T, at string, rest ...providertest.Turn) (r *real, conv engine.Conversation, h *recorder, end chan error, interrupt context.CancelCauseFunc) {
	t.Helper()
	stall, asked := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stall) })
	configuration, first := "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"", providertest.Turn{Text: []string{"thinking"}, Stall: stall}
	switch at {
	case "command":
		first = providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": "echo ran >> ran.txt; sleep 600", "yield_time_ms": 25000}))
	case "question":
		configuration, first = "approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"", escalated("c1")
	}
	r = newReal(t, configuration, append([]providertest.Turn{first}, rest...)...)
	h = &recorder{exec: func(ctx context.Context, _ approval.Command) elicit.Outcome {
		close(asked)
		<-ctx.Done()
		return elicit.Outcome{Decision: elicit.Abort}
	}}
	conv = r.start(t, h, protocol.Config{})
	ctx, interrupt := context.WithCancelCause(t.Context())
	t.Cleanup(func() { interrupt(nil) })
	in := text("go")
	in.Key = "key-of-the-turn"
	end = begin(ctx, conv, in)
	switch at {
	case "model":
		must.OK(t, r.Await(t.Context(), 1))
	case "command":
		h.wait(t, "exec_command_begin")
		for ran(r) == 0 {
			<-time.After(time.Millisecond)
		}
	case "question":
		<-asked
	}
	return r, conv, h, end, interrupt
}

// TestRealTurnEnds ends turns of the real Codex that wait for the model, a command or a person. Nothing of them
// is left, and another turn works unless the engine was closed.
func TestRealTurnEnds(t *testing.T) {
	t.Parallel()
	why := errors.New("enough")
	var failed *engine.TurnError
	interrupted := func(err error) bool { return errors.Is(err, why) }
	killed := func(err error) bool { return errors.As(err, &failed) }
	for name, tt := range map[string]struct {
		at     string // model, command or question
		end    func(r *real, interrupt func())
		is     func(error) bool
		closes bool
	}{
		"killed": {"model", func(r *real, _ func()) { kill(t, r.engine.PID()) }, func(err error) bool { return killed(err) && strings.Contains(err.Error(), "killed") }, false},
		"command interrupted": {"command", func(r *real, interrupt func()) {
			interrupt()
			for len(r.processes(t, "sleep\x00600")) > 0 { // Codex ends them, but answers before they have exited
				<-time.After(20 * time.Millisecond)
			}
		}, interrupted, false},
		"closed": {"command", func(r *real, _ func()) { r.engine.Close() }, func(err error) bool { return err != nil }, true},
		"hangs": {"model", func(r *real, interrupt func()) {
			must.Check(t, syscall.Kill(r.engine.PID(), syscall.SIGSTOP))
			interrupt()
		}, func(err error) bool { return err != nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, conv, h, done, interrupt := held(t, tt.at, providertest.Say("again"))
			if len(r.processes(t, "")) == 0 {
				t.Fatal("no process to look for")
			}
			within(t, func() {
				tt.end(r, func() { interrupt(why) })
				if err := <-done; !tt.is(err) {
					t.Errorf("error %v", err)
				}
			})
			if !tt.closes {
				if err := conv.Turn(t.Context(), text("on")); err != nil || h.answer() != "again" || made(r) {
					t.Errorf("next turn: %v, %q, made %v", err, h.answer(), made(r))
				}
			}
			within(t, func() { r.engine.Close() })
			if left := r.processes(t, ""); len(left) != 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

func TestRealWordsOfOld(t *testing.T) {
	t.Parallel()
	r := newReal(t, "\n", providertest.Say("fine"))
	r.configure(t, "\n[profiles.careful]\nmodel = \"careful-model\"\napproval_policy = \"on-failure\"\n")
	h := &recorder{}
	conv := r.start(t, h, protocol.Config{Profile: "careful", ApprovalPolicy: protocol.ApprovalOnFailure, Choices: protocol.Choices{IncludePlanTool: new(true)}})
	must.OK(t, conv.Turn(t.Context(), text("go")))
	must.Equal(t, "model", "careful-model", r.Requests()[0].Model())
}

// TestRealCannotStart has a Codex whose home, program or configuration is not usable.
func TestRealCannotStart(t *testing.T) {
	t.Parallel()
	var missing *appserver.NotFoundError
	for name, tt := range map[string]struct {
		file string // of the configuration
		path string // of the program or the home, below the home
		is   func(error) bool
		says string
	}{
		"not signed in":           {"", "", func(err error) bool { return errors.Is(err, appserver.ErrNotSignedIn) }, ""},
		"a refused configuration": {"model_provider = \"old\"\n[model_providers.old]\nname = \"old\"\nbase_url = \"http://127.0.0.1:9/v1\"\nwire_api = \"chat\"\n", "", nil, "wire_api"},
		"no home":                 {"", "absent", nil, "make that folder"},
		"no program":              {"", "no-codex", func(err error) bool { return errors.As(err, &missing) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReal(t, "")
			writeFile(t, filepath.Join(r.home, "config.toml"), tt.file)
			switch tt.path {
			case "absent":
				r.options.CodexHome = filepath.Join(r.home, tt.path)
			case "no-codex":
				r.options.Path = filepath.Join(r.home, tt.path)
			}
			r.restart(t)
			within(t, func() {
				_, err := r.engine.Start(t.Context(), protocol.Config{Cwd: r.cwd}, &recorder{})
				if err == nil || tt.is != nil && !tt.is(err) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("error %v", err)
				}
			})
			if report := r.engine.Check(t.Context()); report.Usable() || !strings.Contains(report.Problem, tt.says) || (report.Version == "") != (tt.path == "no-codex") {
				t.Errorf("report %+v", report)
			}
		})
	}
}

func TestRealSecondWriter(t *testing.T) {
	t.Parallel()
	r := newReal(t, "", providertest.Say("one"))
	conv := r.start(t, &recorder{}, protocol.Config{})
	must.OK(t, conv.Turn(t.Context(), text("go")))
	other := must.Get(appserver.New(r.options))(t)
	defer other.Close()
	path, err := fileOf(t, other, conv.ID())
	must.OK(t, err)
	_, err = other.Resume(t.Context(), savedAt(path), protocol.Config{}, &recorder{})
	if err == nil || !strings.Contains(err.Error(), "active writer") {
		t.Errorf("error %v", err)
	}
}

func TestRealOverrides(t *testing.T) {
	t.Parallel()
	r := newReal(t, "", providertest.Say("fine"))
	r.options.Overrides = map[string]any{"model": "other-model", "approval_policy": "untrusted",
		"model_providers": map[string]any{"mock": map[string]any{"http_headers": map[string]any{"x-test": "a \"b\""}}}}
	r.restart(t)
	h := &recorder{}
	must.OK(t, r.start(t, h, protocol.Config{}).Turn(t.Context(), text("go")))
	req := r.Requests()[0]
	if req.Model() != "other-model" || req.Header.Get("x-test") != `a "b"` {
		t.Errorf("model %q, header %q", req.Model(), req.Header.Get("x-test"))
	}
	must.Equal(t, "policy", "untrusted", r.engine.Check(t.Context()).ApprovalPolicy)
}

// takeUp kills Codex, as the launcher does when the server is killed, starts another engine, and
// continues the turn there. It returns what a person was told.
func (r *real) takeUp(t *testing.T, conv engine.Conversation, h engine.Host, end <-chan error, in protocol.TurnInput) (notes []string, err error) {
	t.Helper()
	kill(t, r.engine.PID())
	<-end
	r.restart(t)
	must.OK(t, r.engine.Traits().CanContinue(t.Context()))
	again := r.resume(t, conv, h, protocol.Config{Continues: true})
	in.Continue = func(words string) { notes = append(notes, words) }
	err = again.Turn(t.Context(), in)
	return notes, err
}

// TestRealContinue kills the real Codex while a turn waits for the model, while a command runs,
// and while a question is open. Another one continues the turn, and no command runs twice.
func TestRealContinue(t *testing.T) {
	t.Parallel()
	needs(t, newQuestions)
	for name, told := range map[string]int{"model": 0, "command": 1, "question": 1} {
		if name == "model" && !nightly.Tests() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			rest := []providertest.Turn{providertest.Say("went on")}
			if name == "question" {
				rest = []providertest.Turn{escalated("c2"), providertest.Say("went on")}
			}
			r, conv, _, end, _ := held(t, name, rest...)
			after := decide(elicit.Approved)
			notes, err := r.takeUp(t, conv, after, end, protocol.TurnInput{Key: "key-of-the-turn"})
			if err != nil || after.answer() != "went on" || len(notes) != told {
				t.Errorf("%v, %q, notes %q", err, after.answer(), notes)
			}
			if n := ran(r); name == "command" && n != 1 || name == "question" && !made(r) {
				t.Errorf("the command ran %d times, made %v", n, made(r))
			}
			// The launcher, node and Codex. An app-server that has just begun writes down what the user's shell has, by
			// short programs.
			left := r.processes(t, "")
			for end := time.Now().Add(10 * time.Second); name == "command" && len(left) > 3 && time.Now().Before(end); left = r.processes(t, "") {
				<-time.After(20 * time.Millisecond)
			}
			if name == "command" && len(left) > 3 {
				t.Errorf("left: %q", left)
			}
			body := string(r.Requests()[1].Body)
			if !strings.Contains(body, "Find out what such a call has done") || name != "model" && !strings.Contains(body, `"aborted"`) {
				t.Errorf("the model was told %s", body)
			}
		})
	}
}

func ran(r *real) int {
	text, _ := os.ReadFile(filepath.Join(r.cwd, "ran.txt")) // it may not exist yet
	return strings.Count(string(text), "\n")
}

// TestRealContinueChecked kills the real Codex in the check of a second try. Another one reports the end of that try again
// without asking the model, and the check runs again when nothing of the first run is left.
func TestRealContinueChecked(t *testing.T) {
	t.Parallel()
	needs(t, newQuestions)
	r := newReal(t, "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"", providertest.Say("one"), providertest.Say("two"))
	conv := r.start(t, decide(elicit.Denied), protocol.Config{})
	for _, words := range []string{"go", "again"} { // the tries of a turn have one key
		in := text(words)
		in.Key = "key-of-the-turn"
		must.OK(t, conv.Turn(t.Context(), in))
	}
	check := func(conv engine.Conversation) (string, error) {
		line := "echo ran >> ran.txt; [ $(wc -l < ran.txt) -gt 1 ] || sleep 600"
		return conv.(engine.Checker).Check(t.Context(), engine.Line{ID: rand.Text(), Text: line, Limit: time.Minute})
	}
	cut := make(chan string)
	go func() {
		why, _ := check(conv)
		cut <- why
	}()
	for ran(r) == 0 {
		<-time.After(time.Millisecond)
	}
	kill(t, r.engine.PID())
	if why := <-cut; !strings.Contains(why, "it did not run to its end") {
		t.Errorf("a check that was cut off: %q", why)
	}
	r.restart(t)
	h := decide(elicit.Denied)
	again := r.resume(t, conv, h, protocol.Config{Continues: true})
	must.OK(t, again.Turn(t.Context(), protocol.TurnInput{Key: "key-of-the-turn", Continue: func(words string) { t.Error(words) }}))
	must.Equal(t, "the answer", "two", h.answer())
	must.Equal(t, "requests to the model", 2, len(r.Requests()))
	if left := r.processes(t, "sleep"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	must.Equal(t, "why the second check says nothing", "", must.Get(check(again))(t))
	must.Equal(t, "runs", 2, ran(r))
}
