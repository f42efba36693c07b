package turn_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// TestAbortWithoutReason: the error of an engine need not say why the turn was aborted.
func TestAbortWithoutReason(t *testing.T) {
	w := turn.New(changes.Options{})
	end(w, &engine.AbortError{})
	if got := w.Result().Content; got != "Turn aborted: interrupted" {
		t.Errorf("it says %q", got)
	}
}

// TestChecked says what follows from how the command of a check ended: whether it passed, and whether the model can mend it.
func TestChecked(t *testing.T) {
	w := turn.New(changes.Options{Off: true})
	for code, want := range map[int]string{-1: "false false it has not ended", 0: "true false ", 1: "false true ", 127: "false true the shell found no such program"} {
		w.Checking("id", "line", 1)
		w.Add("", transcript.New(""), protocol.ExecCommandEnd{CallID: "id", ExitCode: code})
		w.Add("", transcript.New(""), protocol.ExecCommandEnd{CallID: "another", ExitCode: 2})
		_, passed, again := w.Checked("")
		must.Equal(t, fmt.Sprint(code), want, fmt.Sprint(passed, again, " ", w.So().Check.Why))
	}
}

// TestSetUp says how a turn goes on after its set-up: what the caller reads of one that did not pass, and that one which passed
// is neither the turn's nor done again.
func TestSetUp(t *testing.T) {
	for _, tt := range []struct {
		exit      *int
		why, want string
	}{
		{nil, "nobody was asked", "the task did not begin: the set-up of the worktree, `npm ci`, was not done: nobody was asked"},
		{nil, "", "the task did not begin: the set-up of the worktree, `npm ci`, was not done: it has not ended"},
		{new(0), "", ""},
		{new(0), "a host was refused", ""},
		{new(7), "", "the task did not begin: the set-up of the worktree, `npm ci`, failed with exit code 7. The end of its output, " +
			"which is that of a program, and of which nothing is said by the user:\nout"},
		{new(7), "the sandbox stopped it", "the task did not begin: the set-up of the worktree, `npm ci`, failed with exit code 7: the sandbox stopped it. " +
			"The end of its output, which is that of a program, and of which nothing is said by the user:\nout"},
	} {
		w := turn.New(changes.Options{Off: true})
		w.Order.Key, w.Order.Setup = "k", &turn.Setup{Line: "npm ci"}
		w.Order.Subject = "work"
		var commits []string
		w.Order.Worktree = &protocol.Worktree{}
		w.Order.Commit = func(subject string) (string, []string) {
			commits = append(commits, subject)
			return "123", []string{"it is committed"}
		}
		w.Queue(t.Context())
		w.Begin(w.Context(), protocol.SessionConfigured{Cwd: t.TempDir()}, nil)
		w.SettingUp("id", "npm ci")
		if tt.exit != nil {
			s := w.Add("", transcript.New(""), protocol.ExecCommandBegin{CallID: "id", Command: []string{"bash", "-lc", "npm ci"}})
			must.Equal(t, "it does", "setting up: npm ci", s.Doing)
			w.Add("", transcript.New(""), protocol.ExecCommandEnd{CallID: "id", ExitCode: *tt.exit, FormattedOutput: "out"})
			must.Equal(t, "the command is marked", true, w.So().Commands[0].Setup)
		}
		err := w.SetUp(tt.why)
		said := ""
		if err != nil {
			said = err.Error()
		}
		must.Equal(t, "the caller reads", tt.want, said)
		want := []string{"Set up: npm ci"}
		if err == nil {
			w.Settled()
			want = append(want, "work")
		}
		must.Equal(t, "it is done again", err != nil, w.Resume().Setup != nil)
		w.Conclude(err)
		w.End()
		must.Equal(t, "commits", want, commits)
		must.Equal(t, "the remarks say that the work is committed", err == nil, strings.Contains(w.Result().Content, "it is committed"))
	}
}

// TestResume writes what another process, perhaps of another version, reads.
func TestResume(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, k := range map[string]turn.Resume{
		`{"key":"k"}`:                          {Key: "k"},
		`{"key":"k","tokens":5,"minutes":0.5}`: {Key: "k", Budget: &turn.Budget{Tokens: new(int64(5)), Minutes: new(0.5)}},
		`{"key":"k","began":"2026-01-02T03:04:05Z","minutes":2,"schema":{"type":"object"}}`: {
			Key: "k", Began: began, Budget: &turn.Budget{Minutes: new(2.0)}, Schema: jsontext.Value(`{"type":"object"}`),
		},
		`{"key":"k","setup":{"line":"npm ci","items":[{"type":"text","data":{"text":"go"}}]}}`: {
			Key: "k", Setup: &turn.Setup{Line: "npm ci", Items: protocol.TextInput("go")},
		},
		`{"key":"k","began":"2026-01-02T03:04:05Z","used":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0,"total_tokens":0}}`: {
			Key: "k", Began: began, Used: &protocol.TokenUsage{InputTokens: 1},
		},
	} {
		j := turn.New(changes.Options{})
		j.Order.Resume = k
		if !k.Began.IsZero() {
			j.Continue(&protocol.TurnResult{}, k.Began, k.Used)
		}
		var read turn.Resume
		must.OK(t, json.Unmarshal([]byte(want), &read))
		if diff := cmp.Diff(want, string(must.Get(json.Marshal(j.Resume()))(t))) + cmp.Diff(k, read); diff != "" {
			t.Error(diff)
		}
	}
	here := turn.New(changes.Options{})
	here.Order.Budget = &turn.Budget{}
	if none := here.Resume(); none != nil {
		t.Errorf("without a key: %+v", none)
	}
	used := &protocol.TokenUsage{InputTokens: 1}
	here.Order.Key, here.Order.Budget = "k", nil
	here.Begin(t.Context(), protocol.SessionConfigured{}, used)
	if read := here.Resume(); read.Began.IsZero() || !cmp.Equal(read.Used, used) {
		t.Errorf("begun here: %+v", read)
	}
}

// TestBudgetOfAContinuedTurn leaves a turn the time that it had not used in the process before.
func TestBudgetOfAContinuedTurn(t *testing.T) {
	for passed, want := range map[time.Duration]time.Duration{0: 10 * time.Minute, 4 * time.Minute: 6 * time.Minute, time.Hour: 1} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			w := turn.New(changes.Options{})
			w.Continue(&protocol.TurnResult{}, begin.Add(-passed), nil)
			w.Order.Budget = &turn.Budget{Minutes: new(10.0)}
			w.Queue(t.Context())
			ctx := w.Context()
			w.Begin(ctx, protocol.SessionConfigured{}, nil)
			<-ctx.Done()
			if spent := context.Cause(ctx); spent.Error() != "budget of 10 minutes reached" {
				t.Errorf("it ended with %v", spent)
			}
			if took := time.Since(begin); took != want {
				t.Errorf("after %v elsewhere it may take %v, want %v", passed, took, want)
			}
		})
	}
}
