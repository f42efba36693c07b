package board

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

// TestRecordedAnswers judges the answers of the recorded conversations, by how long they took in
// milliseconds: none of a person is automatic, and all of programs are.
func TestRecordedAnswers(t *testing.T) {
	persons := []int{838, 1402, 1805, 3057, 2304, 908, 12636, 928, 806, 8755, 350}
	programs := []int{7, 1, 2, 6, 0}
	for _, automatic := range []setting.Automatic{"", setting.AutomaticAccept, setting.AutomaticAsk, setting.AutomaticDeny} {
		for _, out := range []elicit.Outcome{
			{Decision: elicit.Approved}, {Decision: elicit.ApprovedForSession}, {Decision: elicit.Denied, Reason: elicit.ReasonDeclined},
			{Decision: elicit.Abort, Reason: elicit.ReasonCancelled}, {Decision: elicit.Denied, Reason: elicit.ReasonNotUnderstood},
		} {
			h := NewHosts(setting.Asking{Automatic: automatic}).Host("claude-code")
			for _, took := range slices.Concat(persons, persons) {
				out.Took = time.Duration(took) * time.Millisecond
				if v := h.judge(out, func() bool { return true }); v != (verdict{}) {
					t.Errorf("%s, a person after %d ms: %+v", out.Decision, took, v)
				}
			}
			for _, took := range programs {
				out.Took = time.Duration(took)*time.Millisecond + time.Microsecond
				if v := h.judge(out, func() bool { return false }); v.automatic == "" {
					t.Errorf("%s, a program after %d ms: %+v", out.Decision, took, v)
				}
			}
		}
	}
}

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
		answers   string
		automatic setting.Automatic
		alone     bool
		want      string // for each answer: given, void, refused; then whether the host is asked again
	}{
		{"A D C U", "", false, "given given given given asked"},
		{"d", "", false, "void skipped"},
		{"c", "", false, "void skipped"},
		{"e", "", false, "void skipped"},
		{"u u", "", false, "given void skipped"},
		{"u D u", "", false, "given given given asked"},
		{"E", "", false, "given asked"},
		{"E E", "", false, "given void skipped"},
		{"E D E", "", false, "given given given asked"},
		{"a a a", "", false, "given given given asked"},
		{"d a", "", false, "void void skipped"}, // it was open already
		{"a a", setting.AutomaticAsk, false, "void void skipped"},
		{"a A a", setting.AutomaticAsk, false, "void given void asked"},
		{"a a", setting.AutomaticDeny, false, "refused refused asked"},
		{"t t", "", false, "given given asked"},
		{"d d c e u u a", "", true, "given given given given given given given asked"},
		{"a a", setting.AutomaticAsk, true, "void void asked"}, // and nothing runs
		{"a a", setting.AutomaticDeny, true, "refused refused asked"},
	} {
		h := NewHosts(setting.Asking{Automatic: tt.automatic}).Host("x")
		var got []string
		for letter := range strings.FieldsSeq(tt.answers) {
			out := outcomes[strings.ToLower(letter)]
			if out.Took = 2 * time.Millisecond; letter != strings.ToLower(letter) {
				out.Took = Instant
			}
			word := "given"
			switch v := h.judge(out, func() bool { return !tt.alone }); {
			case v.void:
				word = "void"
			case v.refused:
				word = "refused"
			}
			got = append(got, word)
		}
		again := "asked"
		if h.skip() != "" {
			again = "skipped"
		}
		if diff := cmp.Diff(tt.want, strings.Join(append(got, again), " ")); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.answers, tt.automatic, diff)
		}
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
	n := 0
	s.all.Range(func(any, any) bool { n++; return true })
	if n != maxHosts {
		t.Errorf("%d hosts are kept", n)
	}
}

// TestAutomatic finds what clients answered by themselves in a log.
func TestAutomatic(t *testing.T) {
	const line = `{"time":"2026-11-20T11:28:31Z","question":{"type":"x"},"decision":"denied","by":"desk","automatic":"The client \"a\" declined %d ms after the question"}` + "\n"
	log := "half a line\n" + fmt.Sprintf(line, 2) + `{"decision":"approved","by":"client"}` + "\n" + fmt.Sprintf(line, 3)
	want := []string{`2026-11-20 11:28:31: The client "a" declined 3 ms after the question (denied, by desk)`}
	if diff := cmp.Diff(want, Automatic([]byte(log), 3)); diff != "" {
		t.Error(diff)
	}
}
