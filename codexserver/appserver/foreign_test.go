package appserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// goal is the goal of a thread in the fake, and what was done to it and to foreign turns, in order.
type goal struct {
	f      *fake
	status string // "" for none
	did    []string
	deaf   int // how many pauses do not hold
}

// goals gives the fake a goal.
func (f *fake) goals(status string) *goal {
	g := &goal{f: f, status: status}
	reply := func() (any, error) {
		if g.status == "" {
			return map[string]any{"goal": nil}, nil
		}
		return map[string]any{"goal": map[string]any{"status": g.status, "objective": "make a file"}}, nil
	}
	f.on["thread/goal/get"] = func(*run, *jsonrpc.Request) (any, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return reply()
	}
	f.on["thread/goal/set"] = func(_ *run, req *jsonrpc.Request) (any, error) {
		var p struct{ Status, ThreadID string }
		if err := json.Unmarshal(req.Params, &p); err != nil {
			return nil, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		g.did = append(g.did, p.Status)
		if g.deaf--; g.deaf < 0 {
			g.status = p.Status
		}
		return reply()
	}
	f.on["turn/interrupt"] = func(r *run, req *jsonrpc.Request) (any, error) {
		var p struct{ TurnID string }
		if err := json.Unmarshal(req.Params, &p); err != nil {
			return nil, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		g.did = append(g.did, "interrupt "+p.TurnID)
		return nil, nil
	}
	return g
}

func (g *goal) done() string {
	g.f.mu.Lock()
	defer g.f.mu.Unlock()
	return strings.Join(g.did, ", ")
}

func (r *run) begins(turn string) {
	r.notify("turn/started", `{"threadId":%q,"turn":{"id":%q,"status":"inProgress","items":[]}}`, threadID, turn)
}

// remarks returns the remarks of the last turn.
func (h *recorder) remarks() (words []string) {
	for _, e := range h.all() {
		switch m := e.(type) {
		case protocol.TaskStarted:
			words = nil
		case protocol.BackgroundEvent:
			if m.Remark {
				words = append(words, m.Message)
			}
		}
	}
	return words
}

const (
	paused      = "Codex's goal of this conversation was paused, because nothing of it works on after its turn"
	interrupted = "Codex began a turn by itself, which nobody had asked for here, and it was interrupted"
	agentEnded  = "a sub-agent of Codex worked on after the turn, and was interrupted"
)

// TestGoalsArePaused ends turns in which a goal became active.
func TestGoalsArePaused(t *testing.T) {
	for name, tt := range map[string]struct {
		status  string
		deaf    int
		turn    func(*run, *goal)
		remarks []string
		did     string
		fails   string
	}{
		"none":     {"", 0, nil, nil, "", ""},
		"complete": {"complete", 0, nil, nil, "", ""},
		"active":   {"active", 0, nil, []string{paused}, "paused", ""},
		"thrice":   {"active", 2, nil, []string{paused}, "paused, paused, paused", ""},
		"for ever": {"active", 1000, nil, nil, "paused, paused, paused, paused, paused", "the goal"},
		"told": {"", 0, func(r *run, g *goal) {
			r.mu.Lock()
			g.status = "active"
			r.mu.Unlock()
			r.notify("thread/goal/updated", `{"threadId":%q,"turnId":%q,"goal":{"status":"active","objective":"x"}}`, threadID, turnID)
			time.Sleep(time.Minute)
			r.mu.Lock()
			g.did = append(g.did, "end")
			r.mu.Unlock()
		}, []string{paused}, "paused, end", ""},
	} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			g := f.goals(tt.status)
			g.deaf = tt.deaf
			f.turn = func(r *run) {
				if tt.turn != nil {
					tt.turn(r, g)
				}
				answered(r)
			}
			h := &recorder{}
			conv := start(t, f.engine(appserver.Options{}), h)
			err := conv.Turn(t.Context(), text("go"))
			must.OK(t, err)
			must.Equal(t, "did", tt.did, g.done())
			if tt.fails == "" {
				must.Equal(t, "remarks", tt.remarks, h.remarks())
			} else if _, err := f.runs[0].wire.Read(t.Context()); err == nil {
				t.Error("the app-server was not ended")
			}
		})
	}
}

// TestGoalOfAResumedConversation pauses a goal before Codex loads the thread, in this process and in the next one.
func TestGoalOfAResumedConversation(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		g := f.goals("active")
		f.turn = answered
		f.on["thread/read"] = reply(`{"thread":{"path":"/rollout.jsonl","cwd":"/work"}}`)
		h := &recorder{}
		conv := must.Get(f.engine(appserver.Options{}).Resume(t.Context(), savedAt(writeRollout(t)), protocol.Config{}, h))(t)
		calls := f.methods()
		if set, load := slices.Index(calls, "thread/goal/set"), slices.Index(calls, "thread/resume"); set < 0 || set > load {
			t.Errorf("calls %q", calls)
		}
		must.OK(t, conv.Turn(t.Context(), text("go")))
		must.Equal(t, "remarks", []string{paused}, h.remarks())
		f.mu.Lock()
		g.status = "active"
		f.mu.Unlock()
		f.runs[0].wire.Close()
		synctest.Wait()
		must.OK(t, conv.Turn(t.Context(), text("on")))
		must.Equal(t, "remarks", []string{paused}, h.remarks())
		must.OK(t, conv.Turn(t.Context(), text("and on")))
		must.Equal(t, "remarks", []string(nil), h.remarks())
		must.Equal(t, "did", "paused, paused", g.done())
	})
}

// TestForeignTurns has Codex begin turns by itself before, in and after a turn.
func TestForeignTurns(t *testing.T) {
	for name, tt := range map[string]struct {
		status               string
		before, inside       func(*run)
		after                func(*run)
		first, second, third []string // the remarks of the results of three turns
		did                  string
	}{
		"before": {before: func(r *run) { r.begins("f") }, first: []string{interrupted}, did: "interrupt f"},
		"inside": {inside: func(r *run) { r.begins("f") }, first: []string{interrupted}, did: "interrupt f"},
		"after":  {after: func(r *run) { r.begins("f") }, second: []string{interrupted}, did: "interrupt f"},
		"of a goal": {status: "active", before: func(r *run) { r.begins("f") },
			first: []string{interrupted, paused}, did: "paused, interrupt f"},
		"many": {after: func(r *run) {
			for i := range 3 {
				r.begins(fmt.Sprint("f", i))
				synctest.Wait()
			}
		}, second: []string{interrupted}, did: "interrupt f0, interrupt f1, interrupt f2"},
		"a sub-agent in the turn":   {inside: func(r *run) { withAgent(r); agentEnds(r) }},
		"a sub-agent that works on": {inside: withAgent, first: []string{agentEnded}, did: "interrupt agent-turn"},
		"a sub-agent that begins again": {inside: func(r *run) { withAgent(r); agentEnds(r) }, after: func(r *run) {
			r.notify("turn/started", `{"threadId":%q,"turn":{"id":"again","status":"inProgress","items":[]}}`, agentID)
		}, second: []string{agentEnded}, did: "interrupt again"},
		"a thread of nobody": {inside: func(r *run) {
			r.notify("turn/started", `{"threadId":%q,"turn":{"id":"x","status":"inProgress","items":[]}}`, other)
		}},
	} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			g := f.goals(tt.status)
			f.turn = func(r *run) {
				if r.current() == turnID && tt.inside != nil {
					tt.inside(r)
				}
				answered(r)
			}
			var logged bytes.Buffer
			e := f.engine(appserver.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
			h := &recorder{}
			conv := start(t, e, h)
			play := func(what func(*run)) {
				if what != nil {
					what(f.runs[0])
				}
				synctest.Wait()
			}
			play(tt.before)
			for i, want := range [][]string{tt.first, tt.second, tt.third} {
				must.OK(t, conv.Turn(t.Context(), text("go")))
				must.Equal(t, fmt.Sprint("remarks of turn ", i+1), want, h.remarks())
				if i == 0 {
					play(tt.after)
				}
			}
			must.Equal(t, "did", tt.did, g.done())
			e.Close()
			for _, words := range slices.Concat(tt.first, tt.second) {
				if !strings.Contains(logged.String(), words) {
					t.Errorf("the log has not %q: %s", words, &logged)
				}
			}
		})
	}
}

// TestForeignTurnAsks refuses the question of a foreign turn, also while a turn of the conversation runs.
func TestForeignTurnAsks(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.goals("")
		f.on["turn/interrupt"] = func(*run, *jsonrpc.Request) (any, error) { return struct{}{}, nil } // it goes on for a while
		answers := make(chan string, 2)
		ended := make(chan struct{})
		f.turn = func(r *run) {
			r.begins("f")
			answers <- r.askCommand(threadID, "f")
			r.notify("turn/completed", `{"threadId":%q,"turn":{"id":"f","status":"interrupted","items":[]}}`, threadID)
			answers <- r.askCommand(threadID, turnID)
			answered(r)
			close(ended)
		}
		h := decide("approved")
		must.OK(t, start(t, f.engine(appserver.Options{}), h).Turn(t.Context(), text("go")))
		<-ended
		must.Equal(t, "of the foreign turn", denied, <-answers)
		must.Equal(t, "of the turn", accepted, <-answers)
		must.Equal(t, "questions", 1, h.count("exec_approval_request"))
	})
}

// TestForeignTurnIsNotEnded kills an app-server that does not end a foreign turn.
func TestForeignTurnIsNotEnded(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.goals("")
		f.on["turn/interrupt"] = never
		f.turn = func(r *run) { r.begins("f"); answered(r) }
		h := &recorder{}
		conv := start(t, f.engine(appserver.Options{}), h)
		begun := time.Now()
		must.OK(t, conv.Turn(t.Context(), text("go")))
		must.Equal(t, "remarks", []string{interrupted}, h.remarks())
		if took := time.Since(begun); took != 10*time.Second {
			t.Errorf("the turn took %v", took)
		}
		f.mu.Lock()
		f.turn = answered
		f.mu.Unlock()
		must.OK(t, conv.Turn(t.Context(), text("on")))
		must.Equal(t, "runs", 2, len(f.runs))
	})
}

// TestStop interrupts what no turn has.
func TestStop(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		g := f.goals("")
		f.turn = answered
		e := f.engine(appserver.Options{})
		conv := start(t, e, &recorder{})
		stop := func(want bool) {
			t.Helper()
			did, err := conv.(engine.Stopper).Stop(t.Context())
			if did != want || err != nil {
				t.Errorf("stopped %v, %v", did, err)
			}
		}
		must.OK(t, conv.Turn(t.Context(), text("go")))
		stop(false)
		f.mu.Lock()
		g.status = "active"
		f.mu.Unlock()
		stop(true)
		stop(false)
		interrupt := f.on["turn/interrupt"]
		f.mu.Lock()
		f.on["turn/interrupt"] = func(r *run, req *jsonrpc.Request) (any, error) { time.Sleep(time.Second / 2); return interrupt(r, req) }
		f.mu.Unlock()
		f.runs[0].begins("f")
		synctest.Wait()
		f.on["thread/list"] = reply(`{"data":[{"id":"` + threadID + `","turns":[]}]}`)
		list := must.Get(e.List(t.Context(), protocol.ListConversationsParams{}))(t)
		must.Equal(t, "news in the list", paused+"; "+interrupted, list.Items[0].News)
		stop(true)
		must.Equal(t, "did", "paused, interrupt f", g.done())
		hasty, cancel := context.WithCancel(t.Context())
		cancel()
		f.runs[0].begins("g")
		synctest.Wait()
		if _, err := conv.(engine.Stopper).Stop(hasty); err == nil {
			t.Error("a caller in haste gets no error")
		}
	})
}

// TestGoalsAreOff starts threads whose configuration has a word about goals, or none.
func TestGoalsAreOff(t *testing.T) {
	const on, off = `{"features":{"goals":true}}`, `{"features":{"goals":false}}`
	for name, tt := range map[string]struct {
		config, layers string
		call           map[string]any
		answer         handler // of thread/goal/get
		want           bool
	}{
		"no word":                  {`{"model":"m"}`, `[]`, nil, nil, false},
		"on":                       {on, `[]`, nil, reply(`{"goal":null}`), true},
		"on, no such thread":       {on, `[]`, nil, refusal("thread not found"), true},
		"off":                      {off, `[]`, nil, nil, false},
		"a weaker layer":           {on, `[{"config":{"model":"m"}},{"config":` + on + `}]`, nil, reply(`{"goal":null}`), true},
		"the strongest counts":     {on, `[{"config":` + off + `},{"config":` + on + `}]`, nil, nil, false},
		"a disabled layer":         {off, `[{"config":` + on + `,"disabledReason":"not trusted"},{"config":{"model":"m"}}]`, nil, nil, false},
		"no layer, but the result": {on, `[{"config":{"model":"m"}}]`, nil, nil, false},
		"the call":                 {`{}`, `[]`, raw("features", `{"goals":true}`), reply(`{"goal":null}`), true},
		"the call, against it":     {off, `[]`, raw("features", `{"goals":true}`), refusal("goals feature is disabled"), false},
		"no text":                  {`{"features":{"goals":"yes"}}`, `[]`, nil, nil, false},
	} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			f.config, f.layers = json.RawMessage(tt.config), json.RawMessage(tt.layers)
			f.on["thread/goal/get"] = tt.answer
			var sent struct{ Config map[string]any }
			f.on["thread/start"] = func(_ *run, req *jsonrpc.Request) (any, error) { return nil, json.Unmarshal(req.Params, &sent) }
			must.Get(f.engine(appserver.Options{}).Start(t.Context(), protocol.Config{Overrides: tt.call}, &recorder{}))(t)
			must.Equal(t, "goals", any(tt.want), sent.Config["features.goals"])
		})
	}
}
