package board_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// provingDesk is a desk whose approvals are proven.
type provingDesk struct {
	*servertest.Desk
	ask   func(ctx context.Context, r *approval.Request) (json.RawMessage, error)
	prove func(r *approval.Request, d elicit.Decision) (json.RawMessage, error)
}

func (d provingDesk) Ask(ctx context.Context, r *approval.Request) (json.RawMessage, error) {
	return d.ask(ctx, r)
}

func (d provingDesk) Prove(r *approval.Request, decision elicit.Decision) (json.RawMessage, error) {
	return d.prove(r, decision)
}

var errUnproven = errors.New("nobody signed")

// silent is a desk where nobody answers.
func silent(ctx context.Context, _ *approval.Request) (json.RawMessage, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestProve has approvals of all places while the desk demands proofs: only those count that the desk
// proves. A denial needs no proof.
func TestProve(t *testing.T) {
	says := func(words string) func(context.Context, *approval.Request) (json.RawMessage, error) {
		return func(context.Context, *approval.Request) (json.RawMessage, error) { return json.RawMessage(words), nil }
	}
	// only proves one decision.
	only := func(proven elicit.Decision) func(*approval.Request, elicit.Decision) (json.RawMessage, error) {
		return func(_ *approval.Request, d elicit.Decision) (json.RawMessage, error) {
			if d != proven {
				return nil, errUnproven
			}
			return json.RawMessage(`{"signature":"x"}`), nil
		}
	}
	never := only("")
	const proof = `"proof":{"signature":"x"}`
	for _, tt := range []struct {
		name   string
		desk   func(context.Context, *approval.Request) (json.RawMessage, error)
		prove  func(*approval.Request, elicit.Decision) (json.RawMessage, error)
		client string // "" if there is none
		rules  approval.Rules
		want   elicit.Decision
		record string
	}{
		{"proven", says(servertest.Accept), only(elicit.Approved), "", approval.Rules{}, elicit.Approved, proof},
		{"proven for the session", says(servertest.ForSession), only(elicit.ApprovedForSession), "", approval.Rules{}, elicit.ApprovedForSession, proof},
		{"proven once, answered for the session", says(servertest.ForSession), only(elicit.Approved), "", approval.Rules{}, elicit.Denied, "nobody signed"},
		{"not proven", says(servertest.Accept), never, "", approval.Rules{}, elicit.Denied, "nobody signed"},
		{"not proven, for the session", says(servertest.ForSession), never, "", approval.Rules{}, elicit.Denied, "nobody signed"},
		{"a desk that panics", says(servertest.Accept), func(*approval.Request, elicit.Decision) (json.RawMessage, error) { panic("x") }, "", approval.Rules{}, elicit.Denied, "panicked"},
		{"a desk that demands none", says(servertest.Accept), func(*approval.Request, elicit.Decision) (json.RawMessage, error) { return nil, nil }, "", approval.Rules{}, elicit.Approved, `"by":"desk"`},
		{"a client", silent, never, servertest.Accept, approval.Rules{}, elicit.Denied, "nobody signed"},
		{"a client, for the session", silent, never, servertest.ForSession, approval.Rules{}, elicit.Denied, "nobody signed"},
		{"a client's flat answer", silent, never, `{"decision":"approved"}`, approval.Rules{}, elicit.Denied, "nobody signed"},
		{"denied at the desk", says(servertest.Decline), never, "", approval.Rules{}, elicit.Denied, `"reason":"declined"`},
		{"denied by the client", silent, never, servertest.Decline, approval.Rules{}, elicit.Denied, `"reason":"declined"`},
		{"stopped", says(servertest.Cancel), never, "", approval.Rules{}, elicit.Abort, `"decision":"abort"`},
		{"a rule", silent, never, "", approval.Rules{Allow: []approval.Rule{{Command: []string{"git"}, Outside: true}}}, elicit.Approved, `"by":"rule"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var record servertest.Journal
			b := board.New(&board.Options{Desk: provingDesk{&servertest.Desk{}, tt.desk, tt.prove}, Rules: tt.rules, Record: board.NewRecord(&record)}, nil)
			if tt.client != "" {
				defer b.Attach(newClient(servertest.Say(tt.client), nil))()
			}
			d := b.Decide(t.Context(), request())
			if d.Decision != tt.want || !strings.Contains(record.String(), tt.record) || !strings.Contains(record.String(), `"decision":"`+string(tt.want)+`"`) {
				t.Errorf("decided %q; the record is %s", d.Decision, &record)
			}
			if refused := tt.record == "nobody signed" || tt.record == "panicked"; refused != strings.Contains(strings.Join(d.Remarks, ""), "Nothing was run: ") || refused != strings.Contains(d.ForModel(), "does not count") {
				t.Errorf("remarks %q, for the model %q", d.Remarks, d.ForModel())
			}
			if proven := tt.record == proof; proven != strings.Contains(record.String(), `"proof"`) {
				t.Errorf("the record is %s", &record)
			}
		})
	}
}

// TestProveSafeOnly has a default that approves a harmless command without asking. Nobody proves that.
func TestProveSafeOnly(t *testing.T) {
	questions := elicit.Options{OnUnsupported: elicit.PolicySafeOnly}
	for _, prove := range []error{nil, errUnproven} {
		desk := provingDesk{&servertest.Desk{}, func(context.Context, *approval.Request) (json.RawMessage, error) { return nil, errors.New("broken") },
			func(*approval.Request, elicit.Decision) (json.RawMessage, error) { return nil, prove }}
		b := board.New(&board.Options{Questions: questions, Desk: desk}, nil)
		defer b.Attach(unable(&questions))()
		r := request()
		r.Question.Safe = true
		if d := b.Decide(t.Context(), r); d.Decision.Approves() != (prove == nil) {
			t.Errorf("with %v: %+v", prove, d)
		}
	}
}

// TestProveCovered approves one question for the session. That also decides the other open question
// that asks the same: the proof of the first is its proof.
func TestProveCovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proofs := 0
		desk := provingDesk{&servertest.Desk{},
			func(ctx context.Context, r *approval.Request) (json.RawMessage, error) {
				time.Sleep(time.Second) // both wait
				if exec, _ := r.Event.(protocol.ExecApprovalRequest); exec.CallID != "" {
					return json.RawMessage(servertest.ForSession), nil
				}
				return silent(ctx, r)
			},
			func(r *approval.Request, _ elicit.Decision) (json.RawMessage, error) {
				proofs++
				if exec, _ := r.Event.(protocol.ExecApprovalRequest); exec.CallID == "" {
					return nil, errUnproven
				}
				return json.RawMessage(`{}`), nil
			}}
		b := board.New(&board.Options{Questions: elicit.Options{Timeout: time.Minute}, Desk: desk}, nil)
		second := make(chan approval.Decision)
		ask := func(call string) approval.Decision {
			r := request()
			r.Event = protocol.ExecApprovalRequest{CallID: call, Command: []string{"make"}, Cwd: "/work", Content: "sum", LeavesSandbox: true}
			return b.Decide(t.Context(), r)
		}
		go func() { second <- ask("") }()
		if d := ask("c1"); d.Decision != elicit.ApprovedForSession {
			t.Errorf("the first: %+v", d)
		}
		if d := <-second; d.Decision != elicit.ApprovedForSession || d.With != "c1" || proofs != 1 {
			t.Errorf("the second: %+v, %d proofs", d, proofs)
		}
	})
}

// TestProveAlways accepts a lasting rule without a proof: it is not kept.
func TestProveAlways(t *testing.T) {
	for _, want := range []elicit.Decision{elicit.ApprovedAlways, elicit.Denied} {
		kept := rulefile.New(filepath.Join(t.TempDir(), "home"), nil)
		desk := provingDesk{&servertest.Desk{},
			func(context.Context, *approval.Request) (json.RawMessage, error) {
				return json.RawMessage(always), nil
			},
			func(*approval.Request, elicit.Decision) (json.RawMessage, error) {
				if want == elicit.Denied {
					return nil, errUnproven
				}
				return json.RawMessage(`{}`), nil
			}}
		b := board.New(&board.Options{Desk: desk, Kept: kept}, nil)
		d := offer(t.Context(), b, lasting(t.TempDir()))
		rules, err := kept.List()
		if d.Decision != want || len(rules) > 0 != want.Approves() || err != nil {
			t.Errorf("decided %+v; the rules are %v, %v", d, rules, err)
		}
	}
}
