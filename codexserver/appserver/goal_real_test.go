//go:build realcodex

package appserver_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

const goalsOn = "\n[features]\ngoals = true\n"

// ambitious is a model that sets a goal in each turn of a person, and works on in each other turn.
func ambitious(r providertest.Request) providertest.Turn {
	body := string(r.Body)
	switch goes := strings.LastIndex(body, `codex_internal_context source=\"goal\"`); {
	case strings.Contains(body, "OTHER PROMPT"):
		return providertest.Say("elsewhere")
	case goes > strings.LastIndex(body, "GOAL PROMPT"):
		return providertest.Call(providertest.Tool("", "exec_command", map[string]any{"cmd": "touch later.txt; sleep 600", "yield_time_ms": 250}))
	case len(r.ToolOutputs()) == 0:
		return providertest.Call(providertest.Tool("g1", "create_goal", map[string]any{"objective": "write later.txt"}))
	}
	return providertest.Say("done")
}

func newAmbitious(t *testing.T, more string) *real {
	const sandbox = "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n"
	return newReal(t, sandbox+more, providertest.Turn{Repeat: true, Func: ambitious})
}

// quiet fails if the provider gets a request for a goal, or a command of one has run. As a clock it takes a turn of another
// conversation of the same app-server, before whose end the turn of a goal would have begun many times.
func (r *real) quiet(t *testing.T) {
	t.Helper()
	before := len(r.Requests())
	for range 2 {
		must.OK(t, r.start(t, &recorder{}, protocol.Config{}).Turn(t.Context(), text("OTHER PROMPT")))
	}
	if n := len(r.Requests()) - before; n != 2 {
		t.Errorf("%d requests came after the result", n-2)
	}
	for _, request := range r.Requests() {
		if strings.Contains(string(request.Body), `codex_internal_context source=\"goal\"`) {
			t.Errorf("a request for the goal: %.300s", request.Body)
			break
		}
	}
	if _, err := os.Stat(filepath.Join(r.cwd, "later.txt")); err == nil {
		t.Error("a command ran after the result")
	}
}

// TestRealGoalsGoOn is the control: the real Codex begins a turn for a goal by itself.
func TestRealGoalsGoOn(t *testing.T) {
	t.Parallel()
	r := newAmbitious(t, "")
	cmd := exec.Command(must.Get(appserver.Find(""))(t), "app-server")
	cmd.Dir, cmd.Env = r.cwd, append(os.Environ(), "CODEX_HOME="+r.home)
	foreign := make(chan string, 10)
	c := must.Get(appclient.Start(t.Context(), cmd, &appclient.Options{
		Capabilities: apptypes.Capabilities{ExperimentalAPI: true}, Foreign: func(method string, n *apptypes.Note) { foreign <- method },
	}))(t)
	defer c.Close()
	var thread apptypes.ThreadReply
	must.OK(t, c.Call(t.Context(), apptypes.CallThreadStart, &apptypes.ThreadParams{Cwd: r.cwd}, &thread))
	turn := must.Get(c.Begin(&apptypes.TurnParams{ThreadID: thread.Thread.ID, Input: appclient.Text("GOAL PROMPT")}, nil))(t)
	must.Get(turn.Wait(t.Context()))(t)
	must.Equal(t, "after the end", apptypes.NoteTurnStarted, <-foreign)
}

// TestRealGoals has a model that sets a goal: nothing happens after the result, also in the next process.
func TestRealGoals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		more   string
		paused bool
	}{"by default": {"", false}, "on": {goalsOn, true}, "off": {strings.Replace(goalsOn, "true", "false", 1), false}} {
		if !nightly.Tests() && !tt.paused {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newAmbitious(t, tt.more)
			h := &recorder{}
			conv := r.start(t, h, protocol.Config{})
			must.OK(t, conv.Turn(t.Context(), text("GOAL PROMPT")))
			if got := strings.Join(h.remarks(), "; "); (got == paused) != tt.paused || got != "" && !tt.paused {
				t.Errorf("remarks %q", got)
			}
			must.Equal(t, "answer", "done", h.answer())
			r.quiet(t)
			must.OK(t, conv.Turn(t.Context(), text("one word, please")))
			r.quiet(t)
			r.restart(t)
			again := r.resume(t, conv, h, protocol.Config{Cwd: r.cwd})
			r.quiet(t)
			must.OK(t, again.Turn(t.Context(), text("one word, please")))
			r.quiet(t)
		})
	}
}

// TestRealGoalOfAPerson resumes a conversation whose goal is active, as one that its user began in the terminal.
func TestRealGoalOfAPerson(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"by default": "", "on": goalsOn} {
		if !nightly.Tests() && more != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newAmbitious(t, more)
			h := &recorder{}
			conv := r.start(t, h, protocol.Config{})
			must.OK(t, conv.Turn(t.Context(), text("OTHER PROMPT")))
			r.engine.Close()
			setGoal(t, r, conv.ID())
			r.restart(t)
			again := r.resume(t, conv, h, protocol.Config{Cwd: r.cwd})
			must.OK(t, again.Turn(t.Context(), text("one word, please")))
			must.Equal(t, "remarks", []string{paused}, h.remarks())
			r.quiet(t)
		})
	}
}

// setGoal sets a goal of a thread that no app-server has loaded.
func setGoal(t *testing.T, r *real, id string) {
	t.Helper()
	cmd := exec.Command(must.Get(appserver.Find(""))(t), "app-server")
	cmd.Dir, cmd.Env = r.cwd, append(os.Environ(), "CODEX_HOME="+r.home)
	c := must.Get(appclient.Start(t.Context(), cmd, &appclient.Options{Capabilities: apptypes.Capabilities{ExperimentalAPI: true}}))(t)
	defer c.Close()
	must.OK(t, c.Call(t.Context(), apptypes.CallThreadGoalSet, map[string]any{"threadId": id, "objective": "write later.txt", "status": "active"}, nil))
}

// TestRealForeignTurn has another program queue a message into a conversation of a server, whose client then interrupts it.
func TestRealForeignTurn(t *testing.T) {
	t.Parallel()
	r := newReal(t, "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n", providertest.Turn{Repeat: true, Func: func(q providertest.Request) providertest.Turn {
		if body := string(q.Body); strings.LastIndex(body, "QUEUED PROMPT") > strings.LastIndex(body, "OWN PROMPT") {
			return providertest.Call(providertest.Tool("", "exec_command", map[string]any{"cmd": "sleep 2; touch later.txt; sleep 600", "yield_time_ms": 250}))
		}
		return providertest.Say("done")
	}})
	c := servertest.Connect(t, codexserver.New(r.engine, &codexserver.Options{Changes: codexserver.ChangeOptions{Read: new(false)}}), nil)
	said := c.CallTool(t, "codex", fmt.Sprintf(`{"prompt":"OWN PROMPT","cwd":%q}`, r.cwd))
	id := servertest.ThreadOf(t, said)
	must.OK(t, r.engine.Queue(t.Context(), id, "QUEUED PROMPT"))
	for said = "Nothing was running."; strings.Contains(said, "Nothing was running."); {
		said = c.CallTool(t, "codex-interrupt", fmt.Sprintf(`{"threadId":%q}`, id))
		if strings.Contains(c.CallTool(t, "codex-list", `{}`), interrupted) {
			break // it was interrupted before
		}
	}
	if list := c.CallTool(t, "codex-list", `{}`); !strings.Contains(list, interrupted) {
		t.Errorf("codex-list: %s", list)
	}
	if said = c.CallTool(t, "codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":"OWN PROMPT"}`, id)); !strings.Contains(said, interrupted) {
		t.Errorf("codex-reply: %s", said)
	}
	if _, err := os.Stat(filepath.Join(r.cwd, "later.txt")); err == nil {
		t.Error("the queued turn went on")
	}
}

// TestRealWorkOfATurn has what Codex begins in a turn, which no rule about foreign turns touches: compaction, and a sub-agent
// for which the turn waits. One for which it does not wait ends with it.
func TestRealWorkOfATurn(t *testing.T) {
	t.Parallel()
	t.Run("compaction", func(t *testing.T) {
		t.Parallel()
		long := providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": "true"}))
		long.Usage = &providertest.Usage{Input: 9000, Output: 20, Total: 9020}
		r := newReal(t, "approval_policy = \"never\"\nmodel_context_window = 10000\nmodel_auto_compact_token_limit = 5000\n",
			long, providertest.Say("summary"), providertest.Say("done"), providertest.Say("done"))
		h := &recorder{}
		must.OK(t, r.start(t, h, protocol.Config{}).Turn(t.Context(), text("go")))
		if n := len(r.Requests()); n < 3 || h.answer() != "done" {
			t.Errorf("%d requests, answer %q", n, h.answer())
		}
		must.Equal(t, "remarks", []string{"Codex summarised the conversation to make room"}, h.remarks())
	})
	t.Run("a sub-agent that works on", func(t *testing.T) {
		t.Parallel()
		spawn := spawnedByTool().Func
		r := newReal(t, "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\nfeatures.multi_agent = true", providertest.Turn{Repeat: true, Func: func(q providertest.Request) providertest.Turn {
			switch root, outputs := strings.Contains(string(q.Body), "ROOT PROMPT"), len(q.ToolOutputs()); {
			case root && outputs == 0:
				return spawn(q)
			case root:
				return providertest.Say("all done")
			}
			return providertest.Call(providertest.Tool("", "exec_command", map[string]any{"cmd": "sleep 2; touch later.txt", "yield_time_ms": 5000}))
		}})
		h := &recorder{}
		must.OK(t, r.start(t, h, protocol.Config{}).Turn(t.Context(), text("ROOT PROMPT")))
		must.Equal(t, "remarks", []string{agentEnded}, h.remarks())
		after := len(r.Requests())
		r.start(t, &recorder{}, protocol.Config{}) // as a clock
		if n := len(r.Requests()); n != after {
			t.Errorf("%d requests after the result", n-after)
		}
	})
}

// TestRealInterruptedGoal interrupts a turn in which a goal is active.
func TestRealInterruptedGoal(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	r := newReal(t, "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\""+goalsOn, providertest.Turn{Repeat: true, Func: func(q providertest.Request) providertest.Turn {
		if strings.Contains(string(q.Body), "GOAL PROMPT") && len(q.ToolOutputs()) > 0 {
			interrupt()
			return providertest.Turn{Stall: make(chan struct{})}
		}
		return ambitious(q)
	}})
	conv := r.start(t, &recorder{}, protocol.Config{})
	begun := time.Now()
	if err := conv.Turn(ctx, text("GOAL PROMPT")); err == nil {
		t.Error("the turn was not interrupted")
	}
	if _, err := conv.(engine.Stopper).Stop(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("interrupted within %v", time.Since(begun))
	r.quiet(t)
}
