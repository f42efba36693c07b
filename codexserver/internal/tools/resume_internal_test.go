package tools

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// TestResume writes what another process, perhaps of another version, reads.
func TestResume(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, k := range map[string]resume{
		`{"key":"k"}`:                          {Key: "k"},
		`{"key":"k","tokens":5,"minutes":0.5}`: {Key: "k", Budget: &turn.Budget{Tokens: new(int64(5)), Minutes: new(0.5)}},
		`{"key":"k","began":"2026-01-02T03:04:05Z","minutes":2,"schema":{"type":"object"}}`: {
			Key: "k", Began: began, Budget: &turn.Budget{Minutes: new(2.0)}, Schema: jsontext.Value(`{"type":"object"}`),
		},
		`{"key":"k","began":"2026-01-02T03:04:05Z","used":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0,"total_tokens":0}}`: {
			Key: "k", Began: began, Used: &protocol.TokenUsage{InputTokens: 1},
		},
	} {
		j := &Turn{resume: k, log: turn.New(changes.Options{})}
		if !k.Began.IsZero() {
			j.log.Continue(&protocol.TurnResult{}, k.Began, k.Used)
		}
		var read resume
		if err := json.Unmarshal([]byte(want), &read); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, string(j.Resume())) + cmp.Diff(k, read); diff != "" {
			t.Error(diff)
		}
	}
	if none := (&Turn{resume: resume{Budget: &turn.Budget{}}, log: turn.New(changes.Options{})}).Resume(); none != nil {
		t.Errorf("without a key: %s", none)
	}
	here, used := &Turn{resume: resume{Key: "k"}, log: turn.New(changes.Options{})}, &protocol.TokenUsage{InputTokens: 1}
	here.log.Begin(t.Context(), protocol.SessionConfigured{}, used)
	var read resume
	if err := json.Unmarshal([]byte(here.Resume()), &read); err != nil || read.Began.IsZero() || !cmp.Equal(read.Used, used) {
		t.Errorf("begun here: %v, %+v", err, read)
	}
}

// TestBudgetOfAContinuedTurn leaves a turn the time that it had not used in the process before.
func TestBudgetOfAContinuedTurn(t *testing.T) {
	for passed, want := range map[time.Duration]time.Duration{0: 10 * time.Minute, 4 * time.Minute: 6 * time.Minute, time.Hour: 1} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancelCause(t.Context())
			begin := time.Now()
			w := turn.New(changes.Options{})
			w.Continue(&protocol.TurnResult{}, begin.Add(-passed), nil)
			w.Limit(&turn.Budget{Minutes: new(10.0)})
			w.Run(ctx, stop)
			w.Begin(ctx, protocol.SessionConfigured{}, nil)
			<-ctx.Done()
			w.End(context.Cause(ctx))
			if spent := w.Spent(); spent == nil || spent.Error() != "budget of 10 minutes reached" {
				t.Errorf("it ended with %v", spent)
			}
			if took := time.Since(begin); took != want {
				t.Errorf("after %v elsewhere it may take %v, want %v", passed, took, want)
			}
		})
	}
}
