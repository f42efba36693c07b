package approve_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
)

const always = `{"action":"accept","content":{"decision":"approved_always"}}`

// lasting asks about a command for which a rule can be offered, in a folder.
func lasting(folder string) *approval.Request {
	r := request()
	exec := r.Event.(protocol.ExecApprovalRequest)
	exec.Command, exec.Cwd, exec.Confinable, exec.LeavesSandbox = []string{"make"}, folder, true, true
	r.Event = exec
	return r
}

// offer asks a question with what the board offers for it, as a host does.
func offer(ctx context.Context, b *approve.Board, r *approval.Request) approval.Decision {
	r.Question.Always = b.Offer(r)
	return b.Decide(ctx, r, false)
}

// TestAlways keeps a rule if a person accepts one that the question showed, and for no other
// reason. It holds for the principal of the question alone.
func TestAlways(t *testing.T) {
	says := func(answer string) func(*approve.Board, *elicit.Options) {
		return func(b *approve.Board, o *elicit.Options) { b.Attach(newClient(servertest.Say(answer), o)) }
	}
	returns := func(out elicit.Outcome) func(*approve.Board, *elicit.Options) {
		return func(b *approve.Board, _ *elicit.Options) { b.Attach(returning(out)) }
	}
	for _, tt := range []struct {
		name   string
		form   elicit.Form
		change func(*approve.Options, *approval.Request)
		place  func(*approve.Board, *elicit.Options)
		want   elicit.Decision
		kept   bool
	}{
		{"a client", elicit.FormDecision, nil, says(always), elicit.ApprovedAlways, true},
		{"a desk", "", nil, returns(elicit.Outcome{Decision: elicit.ApprovedAlways}), elicit.ApprovedAlways, true},
		{"a client approves once", elicit.FormDecision, nil, says(servertest.Accept), elicit.Approved, false},
		{"a client whose form does not show it", elicit.FormEmpty, nil, says(always), elicit.Denied, false},
		{"a flat answer", elicit.FormDecision, nil, says(`{"decision":"approved_always"}`), elicit.Denied, false},
		{"a rule of the program", elicit.FormDecision, func(o *approve.Options, _ *approval.Request) {
			o.Rules.Decide = func(context.Context, *approval.Request) (elicit.Outcome, bool) {
				return elicit.Outcome{Decision: elicit.ApprovedAlways}, true
			}
		}, says(always), elicit.Denied, false},
		{"no store", elicit.FormDecision, func(o *approve.Options, _ *approval.Request) { o.Kept = nil }, says(always), elicit.Denied, false},
		{"nothing to offer", elicit.FormDecision, func(_ *approve.Options, r *approval.Request) {
			exec := r.Event.(protocol.ExecApprovalRequest)
			exec.Confinable = false
			r.Event = exec
		}, returns(elicit.Outcome{Decision: elicit.ApprovedAlways}), elicit.Denied, false},
		{"not all is shown", elicit.FormDecision, func(_ *approve.Options, r *approval.Request) { r.Question.Partial = true }, says(always), elicit.Denied, false},
		{"denied without asking", elicit.FormDecision, func(_ *approve.Options, r *approval.Request) { r.Deny = "no" }, says(always), elicit.Denied, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home, folder := t.TempDir(), t.TempDir()
			var lines servertest.Journal
			o := &approve.Options{Questions: elicit.Options{Schema: tt.form}, Kept: rulefile.New(home, nil), Record: record.To(&lines)}
			store, r := o.Kept, lasting(folder)
			r.Thread.Principal = "ann"
			if tt.change != nil {
				tt.change(o, r)
			}
			b := approve.New(o, nil)
			tt.place(b, &o.Questions)
			d := offer(t.Context(), b, r)
			if d.Decision != tt.want || tt.kept && (!d.Confined || d.RuleWords == "") {
				t.Errorf("%+v", d)
			}
			kept, err := store.List()
			if err != nil || (len(kept) == 1) != tt.kept {
				t.Fatalf("kept %+v, %v", kept, err)
			}
			if d := b.Decide(t.Context(), r, false); d.Decision == elicit.ApprovedAlways && !tt.kept {
				t.Errorf("the offer counts again: %+v", d)
			}
			if !tt.kept {
				return
			}
			if kept[0].By != string(d.By) || !strings.Contains(lines.String(), `"decision":"approved_always"`) ||
				!strings.Contains(lines.String(), `"rule":1,"ruleWords":"`) {
				t.Errorf("kept %+v, recorded %s", kept, &lines)
			}
			for principal, hers := range map[string]bool{"ann": true, "bob": false, "": false} {
				r := lasting(folder)
				r.Thread.Principal = principal
				again := offer(t.Context(), approve.New(o, nil), r)
				if ruled := again.Decision == elicit.Approved && again.By == approval.ByRule && again.Confined; ruled != hers {
					t.Errorf("asked again for %q: %+v", principal, again)
				}
			}
		})
	}
}

// TestAlwaysThatCannotBeKept accepts a rule that cannot be written, or whose folder has gone since the question. The approval
// counts, once and in the sandbox: nothing else is known to have changed. A folder in its place is another one.
func TestAlwaysThatCannotBeKept(t *testing.T) {
	for _, tt := range []struct {
		name   string
		home   []string // laid in the home
		change func(folder, other string) error
		want   elicit.Decision
		told   bool
	}{
		{"gone", nil, func(folder, _ string) error { return os.Remove(folder) }, elicit.Approved, true},
		{"replaced", nil, func(folder, other string) error {
			return errors.Join(os.Remove(folder), os.Symlink(other, folder))
		}, elicit.Denied, false},
		{"no store", []string{"codex-mcp=a file, not a folder"}, func(string, string) error { return nil }, elicit.Approved, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "replaced" {
				testenv.NeedsLinks(t)
			}
			home, folder, other := t.TempDir(), filepath.Join(t.TempDir(), "work"), t.TempDir()
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			boxtest.Lay(t, home, tt.home...)
			o := &approve.Options{Questions: elicit.Options{Schema: elicit.FormDecision}, Kept: rulefile.New(home, nil)}
			b := approve.New(o, nil)
			b.Attach(newClient(func(context.Context) (string, error) { return always, tt.change(folder, other) }, &o.Questions))
			d := offer(t.Context(), b, lasting(folder))
			if told := strings.Contains(strings.Join(d.Remarks, " "), "approved once"); d.Decision != tt.want || d.Confined != d.Decision.Approves() || d.RuleWords != "" || told != tt.told {
				t.Errorf("%+v", d)
			}
			if kept, err := o.Kept.List(); len(kept) > 0 || err != nil && tt.home == nil {
				t.Errorf("kept %v, %v", kept, err)
			}
		})
	}
}

// TestAlwaysAgainstAnother has the stricter of two simultaneous answers decide, without a rule.
func TestAlwaysAgainstAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := rulefile.New(t.TempDir(), nil)
		b := approve.New(&approve.Options{Kept: store}, nil)
		for _, decision := range []elicit.Decision{elicit.ApprovedAlways, elicit.Approved} {
			b.Attach(&approve.Place{By: "desk", Ask: func(ctx context.Context, _ *approval.Request) (elicit.Outcome, error) {
				time.Sleep(time.Second)
				return elicit.Outcome{Decision: decision}, nil
			}})
		}
		d := offer(t.Context(), b, lasting(t.TempDir()))
		if kept, err := store.List(); d.Decision != elicit.Approved || d.Confined || len(kept) > 0 || err != nil {
			t.Errorf("%+v; kept %+v, %v", d, kept, err)
		}
	})
}
