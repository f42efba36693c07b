package thread_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// dayServer returns a client of a server of a home, with an engine of its own, whose turns may use 100 tokens a day.
func dayServer(t *testing.T, home string) (c *servertest.Client, e *servertest.Engine) {
	e = &servertest.Engine{Turn: servertest.Script()}
	o := &codexserver.Options{Home: home, Desk: &servertest.Desk{}, Calls: codexserver.CallOptions{TokensPerDay: 100}, Changes: codexserver.ChangeOptions{Off: true}}
	return servertest.Dial(t, codexserver.New(e, o), nil), e
}

// ask calls a tool, and returns how its turn ended and its texts for people.
func ask(t *testing.T, c *servertest.Client, tool, arguments string) (got string) {
	t.Helper()
	result := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
	var r struct {
		IsError           bool
		StructuredContent struct{ ThreadID, Status, Content string }
	}
	if err := json.Unmarshal([]byte(result), &r); err != nil {
		t.Fatalf("%s: %v", result, err)
	}
	return strings.TrimSpace(fmt.Sprintf("%t %s %s", r.IsError, r.StructuredContent.Status, r.StructuredContent.Content))
}

const (
	refused = "limits.tokens_per_day: %d of 100 tokens are used, and the day ends at 2000-01-0%dT00:00:00Z"
	stopped = "true aborted The turn was stopped: " + refused + ". What it has changed stays; codex-reply continues."
)

func prompt(words string) string { return fmt.Sprintf(`{"prompt":%q}`, words) }

// TestDay uses up days. The clock of the test begins on 2000-01-01.
func TestDay(t *testing.T) {
	type call struct {
		prompt, want string
		used         int64 // of the day, in the record
	}
	codexRefused := "true  codex: " + refused
	for name, calls := range map[string][]call{
		"less":    {{"spend:99 say:a", "false completed a", 99}, {"say:b", "false completed b", 99}},
		"all":     {{"spend:100 say:a", fmt.Sprintf(stopped, 100, 2), 100}, {"say:b", fmt.Sprintf(codexRefused, 100, 2), 100}},
		"more":    {{"say:a spend:60 say:b spend:60 say:c", fmt.Sprintf(stopped, 120, 2) + " Codex said last:\n\nb", 120}, {"say:b", fmt.Sprintf(codexRefused, 120, 2), 120}},
		"at last": {{"say:a spend:9223372036854775807", fmt.Sprintf(stopped, int64(9223372036854775807), 2) + " Codex said last:\n\na", 9223372036854775807}},
		"another day": {
			{"spend:120 wait:1h", fmt.Sprintf(stopped, 120, 2), 120}, {"day", "", 120}, {"spend:80 say:a", "false completed a", 80},
		},
		"over midnight": { // what is reported after it is of the new day
			{"spend:60 wait:24h spend:60 say:a", "false completed a", 60}, {"spend:40 wait:1h", fmt.Sprintf(stopped, 100, 3), 100},
		},
		"fails": {{"spend:60 fail:x", "true failed x", 60}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				home := t.TempDir()
				for i, one := range calls {
					if one.prompt == "day" {
						time.Sleep(24 * time.Hour)
						continue
					}
					c, e := dayServer(t, home) // a server for each call: what is used outlives it
					if got := ask(t, c, "codex", prompt(one.prompt)); got != one.want {
						t.Errorf("call %d:\n%q, want\n%q", i, got, one.want)
					}
					if n := len(e.Started()); strings.Contains(one.want, "codex:") && n != 0 {
						t.Errorf("call %d has started %d conversations", i, n)
					}
					var r struct {
						Day     string
						Tokens  int64
						Running map[string]int64
					}
					text, err := os.ReadFile(filepath.Join(home, "codex-mcp", "day.json"))
					if err == nil {
						err = json.Unmarshal(text, &r)
					}
					if err != nil || r.Tokens != one.used || r.Running != nil {
						t.Errorf("call %d: the record is %s, want %d tokens; %v", i, text, one.used, err)
					}
				}
			})
		})
	}
}

// TestDayOfTurns has turns that begin in other ways, turns at the same time, and another home.
func TestDayOfTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := t.TempDir()
		c, e := dayServer(t, home)
		other, _ := dayServer(t, home) // of another process
		first := servertest.ThreadOf(t, c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"spend:10"}}`))
		reply := func(words, more string) string {
			return fmt.Sprintf(`{"threadId":%q,"prompt":%q%s}`, first, words, more)
		}
		ask(t, c, "codex-reply", reply("spend:10 wait:2h say:last spend:30 wait:1h", `,"background":true,"budget":{"tokens":85}`))
		synctest.Wait()
		if got, want := ask(t, other, "codex", prompt("wait:1h spend:50 say:a")), "false completed a"; got != want { // 70 of the day
			t.Errorf("a turn beside another: %s, want %s", got, want)
		}
		time.Sleep(2 * time.Hour)
		if got, want := c.CallTool(t, "codex-wait", fmt.Sprintf(`{"threadIds":[%q]}`, first)), "The turn was stopped: "+fmt.Sprintf(refused, 100, 2); !strings.Contains(got, want) || !strings.Contains(got, `\n\nlast`) {
			t.Errorf("the other turn: %s, want %s", got, want)
		}
		var most []int64
		for _, in := range e.Turns() {
			most = append(most, in.MaxTokens)
		}
		if diff := cmp.Diff([]int64{100, 85}, most); diff != "" {
			t.Errorf("the limits that the engine gets (-want +got):\n%s", diff)
		}
		for tool, arguments := range map[string]string{
			"codex-reply":  reply("say:x", ""),
			"codex":        `{"prompt":"say:x","background":true}`,
			"codex-review": `{"target":"uncommitted"}`,
		} {
			if got, want := ask(t, c, tool, arguments), "true  "+tool+": "+fmt.Sprintf(refused, 100, 2); got != want {
				t.Errorf("%s: %s, want %s", tool, got, want)
			}
		}
		if n := len(e.Turns()); n != 2 {
			t.Errorf("%d turns ran, want 2", n)
		}
		free, _ := dayServer(t, t.TempDir())
		if got, want := ask(t, free, "codex", prompt("spend:99 say:a")), "false completed a"; got != want {
			t.Errorf("another user: %s, want %s", got, want)
		}
	})
}

// TestDayOfKinds stops each kind of turn when the day is spent, and begins none after it.
func TestDayOfKinds(t *testing.T) {
	kinds := map[string]func(*thread.Thread, thread.Attendance) error{
		"a turn": func(th *thread.Thread, a thread.Attendance) error {
			return th.Turn(t.Context(), th.Queue(), a, protocol.TurnInput{})
		},
		"a review": func(th *thread.Thread, a thread.Attendance) error {
			return th.Review(t.Context(), th.Queue(), a, func(context.Context) (protocol.Review, error) { return protocol.Review{}, nil })
		},
		"the rest": func(th *thread.Thread, a thread.Attendance) error {
			return th.Continue(t.Context(), th.Queue(), a, protocol.TurnInput{}, func(string) {})
		},
	}
	for name, first := range kinds {
		ran := 0
		table := thread.NewTable(reviews{func(ctx context.Context, h engine.Host, _ []protocol.InputItem) error {
			ran++
			h.Emit(protocol.TokenCount{Info: &protocol.TokenUsageInfo{TotalTokenUsage: protocol.TokenUsage{TotalTokens: 100}}})
			return ctx.Err()
		}}, &board.Options{})
		table.LimitDay(100, t.TempDir(), nil)
		th := start(t, table.Share(""))
		turn := turnlog.NewTurn()
		var last protocol.EventMsg
		a := thread.Attendance{Turn: turn, Begin: func(context.Context) { turn.Begin(th.Info(), th.Usage()) }}
		th.Listen("1", func(e protocol.Event) { last = e.Msg })
		if err := first(th, a); !strings.Contains(fmt.Sprint(err), "100 of 100 tokens are used") {
			t.Errorf("%s is not stopped: %v", name, err)
		}
		for next, run := range kinds {
			var failed *engine.TurnError
			if err := run(th, a); !errors.As(err, &failed) || !strings.HasPrefix(failed.Message, "limits.tokens_per_day: 100 of 100 ") || cmp.Diff(last, protocol.EventMsg(protocol.Error{Message: failed.Message})) != "" {
				t.Errorf("%s after %s: %v, and the last event is %+v", next, name, err, last)
			}
		}
		if ran != 1 {
			t.Errorf("%s: %d turns ran", name, ran)
		}
	}
}

// TestDayContinues continues a turn of which 70 tokens of the thread are counted.
func TestDayContinues(t *testing.T) {
	home := t.TempDir()
	table := thread.NewTable(reviews{func(ctx context.Context, h engine.Host, _ []protocol.InputItem) error {
		h.Emit(protocol.TokenCount{Info: &protocol.TokenUsageInfo{TotalTokenUsage: protocol.TokenUsage{TotalTokens: 99}}})
		return ctx.Err()
	}}, &board.Options{})
	table.LimitDay(100, home, nil)
	th := start(t, table.Share(""))
	path, day := filepath.Join(home, "codex-mcp", "day.json"), time.Now().UTC().Format(time.DateOnly)
	err := os.Mkdir(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, fmt.Appendf(nil, `{"day":%q,"tokens":70,"running":{%q:70}}`, day, th.ID()), 0o600)
	}
	turn := turnlog.NewTurn()
	a := thread.Attendance{Turn: turn, Begin: func(context.Context) { turn.Begin(th.Info(), nil) }}
	if err == nil {
		err = th.Continue(t.Context(), th.Queue(), a, protocol.TurnInput{}, func(string) {})
	}
	if text, _ := os.ReadFile(path); err != nil || !strings.HasSuffix(string(text), `,"tokens":99}`) {
		t.Errorf("%v, the record is %s", err, text)
	}
}

// TestDayOfRuns runs turns without MCP, with a home and without.
func TestDayOfRuns(t *testing.T) {
	for home, want := range map[string]string{t.TempDir(): "limits.tokens_per_day: 100 of 100 tokens are used", "": "limits.tokens_per_day: the tokens of the day cannot be counted"} {
		run := func(prompt string) error {
			s := codexserver.New(servertest.Script(), &codexserver.Options{Home: home, Calls: codexserver.CallOptions{TokensPerDay: 100}})
			_, err := s.Run(t.Context(), codexserver.Turn{Prompt: prompt})
			return err
		}
		if err := run("spend:60 say:a"); (err == nil) != (home != "") {
			t.Errorf("the first turn: %v", err)
		}
		if err := run("spend:40 say:b"); err == nil {
			t.Error("the second turn is not stopped")
		}
		if err := run("say:c"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("the last turn: %v", err)
		}
	}
}

// TestDayRecord has records that a turn cannot begin with, and one of a clock that went back.
func TestDayRecord(t *testing.T) {
	for name, tt := range map[string]struct{ record, want string }{
		"later":       {`{"day":"2000-01-02","tokens":100}`, fmt.Sprintf(refused, 100, 3)},
		"earlier":     {`{"day":"1999-12-31","tokens":100}`, ""},
		"future":      {`{"day":"2000-01-03","tokens":1}`, "member day: 2000-01-03 has not come"},
		"no day":      {`{"tokens":1}`, "member day: "},
		"negative":    {`{"day":"2000-01-01","tokens":-1}`, "member tokens is negative"},
		"of a future": {`{"day":"2000-01-01","tokens":1,"cost":1}`, "cost"},
		"twice":       {`{"day":"2000-01-01","tokens":1,"tokens":0}`, "tokens"},
		"empty":       {``, "EOF"},
		"cut":         {`{"day":"2000-01-01","tok`, "EOF"},
		"large":       {strings.Repeat(" ", 2<<20), "1048576"},
		"a folder":    {"", "want a regular file"},
		"unwritable":  {"", "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				home := t.TempDir()
				path := filepath.Join(home, "codex-mcp", "day.json")
				err := os.Mkdir(filepath.Dir(path), 0o700)
				switch {
				case name == "a folder":
					err = os.Mkdir(path, 0o700)
				case name == "unwritable":
					if err = os.Remove(filepath.Dir(path)); err == nil {
						err = os.WriteFile(filepath.Dir(path), nil, 0o600)
					}
				case err == nil:
					err = os.WriteFile(path, []byte(tt.record), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
				c, e := dayServer(t, home)
				got := ask(t, c, "codex", prompt("say:a"))
				if tt.want == "" {
					if got != "false completed a" {
						t.Errorf("got %s", got)
					}
					return
				}
				bad := name != "later"
				if !strings.HasPrefix(got, "true  codex: limits.tokens_per_day: ") || !strings.Contains(got, tt.want) || strings.Contains(got, filepath.Dir(path)) != bad {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				if n := len(e.Turns()); n != 0 {
					t.Errorf("%d turns ran", n)
				}
				if after, err := os.ReadFile(path); err == nil && string(after) != tt.record {
					t.Errorf("the record was %s, and is %s", tt.record, after)
				}
			})
		})
	}
}
