package approve

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

// TestJudge has hosts answer several times, where another place could answer. A letter is an
// answer that no person gave: accept, decline, cancel, an error or none that is understood; in
// capitals it came late, and an error may.
func TestJudge(t *testing.T) {
	outcomes := map[string]elicit.Outcome{
		"a": {Decision: elicit.Approved}, "d": {Decision: elicit.Denied, Reason: elicit.ReasonDeclined},
		"c": {Decision: elicit.Abort, Reason: elicit.ReasonCancelled}, "e": {Decision: elicit.Denied, Reason: elicit.ReasonClientError},
		"u": {Decision: elicit.Denied, Reason: elicit.ReasonNotUnderstood}, "t": {Decision: elicit.Denied, Reason: elicit.ReasonTimeout},
	}
	for _, tt := range []struct {
		answers string
		where   setting.Where
		alone   bool
		want    string // for each answer: given or void; then whether the host is asked again
	}{
		{"A D C U", "", false, "given given given given asked"},
		{"d", "", false, "void skipped"}, {"c", "", false, "void skipped"}, {"e", "", false, "void skipped"},
		{"u u", "", false, "given void skipped"},
		{"u D u", "", false, "given given given asked"},
		{"E", "", false, "given asked"},
		{"E E", "", false, "given void skipped"},
		{"E D E", "", false, "given given given asked"},
		{"a a a", "", false, "given given given asked"},
		{"d a", "", false, "void void skipped"}, // it was open already
		{"a a", setting.WhereBoth, false, "void void skipped"},
		{"a A a", setting.WhereBoth, false, "void given void asked"},
		{"t t", "", false, "given given asked"},
		{"d d c e u u a", "", true, "given given given given given given given asked"},
		{"a a", setting.WhereBoth, true, "void void asked"}, // and nothing runs
	} {
		h := NewHosts(setting.Asking{Where: tt.where}).Host("x")
		var got []string
		for letter := range strings.FieldsSeq(tt.answers) {
			out := outcomes[strings.ToLower(letter)]
			if out.Took = 2 * time.Millisecond; letter != strings.ToLower(letter) {
				out.Took = Instant
			}
			word := "given"
			if v := h.judge(out, func() bool { return !tt.alone }); v.void {
				word = "void"
			}
			got = append(got, word)
		}
		again := "asked"
		if h.skip() != "" {
			again = "skipped"
		}
		if diff := cmp.Diff(tt.want, strings.Join(append(got, again), " ")); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.answers, tt.where, diff)
		}
	}
}

// TestOnlyPersonApproves asks about a command that the engine wants a person to decide about. An
// approval counts if it came no sooner than a person can give it, wherever it came from.
func TestOnlyPersonApproves(t *testing.T) {
	answers := func(places string) (all []*Place) {
		h := NewHosts(setting.Asking{}) // its automatic approvals count otherwise
		for word := range strings.FieldsSeq(places) {
			who, how, _ := strings.Cut(word, ":")
			after, err := time.ParseDuration(strings.TrimRight(how, "!-"))
			if err != nil {
				t.Fatal(err)
			}
			ask := func(context.Context, *approval.Request) (elicit.Outcome, error) {
				time.Sleep(after)
				out := elicit.Outcome{Decision: elicit.Approved}
				switch {
				case strings.HasSuffix(how, "!"):
					out.Decision = elicit.ApprovedForSession
				case strings.HasSuffix(how, "-"):
					out = elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined}
				}
				if who != "program" && who != "desk" {
					out.Took = after
				}
				return out, nil
			}
			switch who {
			case "host":
				all = append(all, &Place{Host: h.Host("x"), Ask: ask})
			case "program":
				all = append(all, &Place{Ask: ask})
			case "desk":
				all = append(all, &Place{By: "desk", Ask: ask})
			}
		}
		return all
	}
	const void = "denied declined the approval came faster than a person can read, and only a person may approve this "
	for _, tt := range []struct{ places, want string }{
		{"host:5ms", void + "nobody; The client \"x\" accepted 5 ms after the question. That did not count."},
		{"host:5ms!", void + "nobody; The client \"x\" accepted 5 ms after the question. That did not count."},
		{"host:299ms", void + "nobody; The client \"x\" accepted 299 ms after the question. That did not count."},
		{"host:300ms", "approved   client"},
		{"host:300ms!", "approved   client"}, // this once
		{"host:1s-", "denied declined  client"},
		{"program:0ms", void + "nobody; The client accepted 1 ms after the question. That did not count."},
		{"program:299ms", void + "nobody; The client accepted 299 ms after the question. That did not count."},
		{"program:300ms", "approved   client"},
		{"desk:5ms", void + "nobody; The desk accepted 5 ms after the question. That did not count."},
		{"desk:5ms-", "denied declined  desk"},
		{"desk:1s", "approved   desk"},
		{"host:5ms desk:1s", "approved   desk; The client \"x\" accepted 5 ms after the question. That did not count; the decision came from the desk."},
		{"host:5ms desk:1s-", "denied declined  desk; The client \"x\" accepted 5 ms after the question. That did not count; the decision came from the desk."},
		{"host:5ms program:6ms", void + "nobody; The client \"x\" accepted 5 ms after the question. That did not count.; The client accepted 6 ms after the question. That did not count."},
		{"program:5ms desk:1s", "approved   desk; The client accepted 5 ms after the question. That did not count; the decision came from the desk."},
	} {
		t.Run(tt.places, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(&Options{}, nil)
				for _, p := range answers(tt.places) {
					defer b.Attach(p)()
				}
				exec := protocol.ExecApprovalRequest{Command: []string{"go", "test"}, Human: true, Once: true}
				d := b.Decide(t.Context(), &approval.Request{Event: exec, Question: &elicit.Question{Once: true}}, false)
				got := strings.Join(append([]string{fmt.Sprintf("%s %s %s %s", d.Decision, d.Reason, d.Feedback, d.By)}, d.Remarks...), "; ")
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// TestHostsAreBounded gives a client many names. Each is judged alone, and only some are kept.
func TestHostsAreBounded(t *testing.T) {
	s := NewHosts(setting.Asking{})
	for i := range 3 * maxHosts {
		name := fmt.Sprint("x", i)
		first := s.Host(name)
		if again := s.Host(name); first == nil || i < maxHosts && again != first {
			t.Fatalf("%s is not remembered", name)
		}
	}
	if len(s.all) != maxHosts {
		t.Errorf("%d hosts are kept", len(s.all))
	}
}
