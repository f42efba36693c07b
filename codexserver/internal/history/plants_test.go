package history_test

import (
	"bytes"
	"context"
	"regexp"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/history"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// hostile answers the engine instead of its host.
type hostile struct {
	engine.Host
	exec func(ctx context.Context, host engine.Host, r protocol.ExecApprovalRequest) elicit.Outcome
}

func (h hostile) ApproveExec(ctx context.Context, r protocol.ExecApprovalRequest) elicit.Outcome {
	return h.exec(ctx, h.Host, r)
}

func hostOf(exec func(ctx context.Context, host engine.Host, r protocol.ExecApprovalRequest) elicit.Outcome) func(engine.Host) engine.Host {
	return func(h engine.Host) engine.Host { return hostile{h, exec} }
}

// swap replaces words in lines.
func swap(old, with string) func([]byte) [][]byte {
	return func(line []byte) [][]byte {
		return [][]byte{bytes.ReplaceAll(line, []byte(old), []byte(with))}
	}
}

// drop loses lines with a word.
func drop(word string) func([]byte) [][]byte {
	return func(line []byte) [][]byte { return [][]byte{line}[:b(!bytes.Contains(line, []byte(word)))] }
}

var (
	firstCall = regexp.MustCompile(`"callId":"(t\d+)\.0"`)
	firstDone = regexp.MustCompile(` t\d+\.0=`)
	requestID = regexp.MustCompile(`"id":(\d+)`)
)

// plants returns the faults by name, each with what the model must find.
func plants() map[string]struct {
	fault faulty
	want  history.Kind
} {
	decide := func(d elicit.Decision) approval.Rules {
		return approval.Rules{Allow: configured.Allow, Deny: configured.Deny, Decide: func(context.Context, *approval.Request) (elicit.Outcome, bool) {
			return elicit.Outcome{Decision: d}, true
		}}
	}
	everything, nothing := decide(elicit.Approved), approval.Rules{Allow: configured.Allow}
	return map[string]struct {
		fault faulty
		want  history.Kind
	}{
		"the host approves what was denied": {faulty{host: hostOf(func(ctx context.Context, host engine.Host, r protocol.ExecApprovalRequest) elicit.Outcome {
			out := host.ApproveExec(ctx, r)
			if out.Decision == elicit.Denied {
				out.Decision = elicit.Approved
			}
			return out
		})}, history.Misheard},
		"the host asks twice": {faulty{host: hostOf(func(ctx context.Context, host engine.Host, r protocol.ExecApprovalRequest) elicit.Outcome {
			host.ApproveExec(ctx, r)
			return host.ApproveExec(ctx, r)
		})}, history.Redecided},
		"the host asks about something else": {faulty{host: hostOf(func(ctx context.Context, host engine.Host, r protocol.ExecApprovalRequest) elicit.Outcome {
			r.CallID += "0"
			return host.ApproveExec(ctx, r)
		})}, history.Exchanged},
		"a rule that nobody made":        {faulty{rules: &everything}, history.Unjustified},
		"a rule that denies is left out": {faulty{rules: &nothing}, history.AfterDenial},
		"the record loses a line":        {faulty{record: func(line []byte) [][]byte { return nil }}, history.Undecided},
		"the record loses what begins":   {faulty{record: drop(`"event":"begins"`)}, history.Unrecorded},
		"the record loses how it ended":  {faulty{record: drop(`"event":"ends"`)}, history.Endless},
		"the record names no decision": {faulty{record: func(line []byte) [][]byte {
			if !bytes.Contains(line, []byte(`"event":"begins"`)) {
				return [][]byte{line}
			}
			return swap(`"decisionId"`, `"other"`)(line)
		}}, history.Unjustified},
		"the record names another place":   {faulty{record: swap(`"by":"client"`, `"by":"desk"`)}, history.Unjustified},
		"a refusal arrives as an approval": {faulty{line: swap(`"action":"decline"`, `"action":"accept"`)}, history.Unjustified},
		"an approval arrives as a refusal": {faulty{line: swap(`"action":"accept"`, `"action":"decline"`)}, history.Ignored},
		"once arrives as for the session":  {faulty{line: swap(`"decision":"approved"`, `"decision":"approved_for_session"`)}, history.Unjustified},
		"results are lost": {faulty{line: func(line []byte) [][]byte {
			return [][]byte{line}[:b(!bytes.Contains(line, []byte(`"structuredContent"`)))]
		}}, history.Unanswered},
		"a question shows another question": {faulty{line: func(line []byte) [][]byte { return [][]byte{firstCall.ReplaceAll(line, []byte(`"callId":"$1.1"`))} }}, history.Unjustified},
		"a call arrives twice": {faulty{line: func(line []byte) [][]byte {
			if !bytes.Contains(line, []byte(`"codex"`)) || !bytes.Contains(line, []byte(`"tools/call"`)) || bytes.Contains(line, []byte(`"requestState"`)) {
				return [][]byte{line}
			}
			return [][]byte{line, requestID.ReplaceAll(line, []byte(`"id":9${1}`))}
		}}, history.TwoStarts},
		"a result says that it ran":     {faulty{line: swap("=not", "=ran")}, history.Missing},
		"a result says that it did not": {faulty{line: swap("=ran", "=not")}, history.Untold},
		"a result is another's":         {faulty{line: func(line []byte) [][]byte { return [][]byte{firstDone.ReplaceAll(line, []byte(" t0.0="))} }}, history.Foreign},
	}
}

func b(v bool) int {
	if v {
		return 1
	}
	return 0
}

// TestModelFinds plants a fault in a server, its record or its connections. The model finds it in one of some runs.
func TestModelFinds(t *testing.T) {
	for name, tt := range plants() {
		t.Run(name, func(t *testing.T) {
			found := map[history.Kind]int{}
			for seed := range uint64(200) {
				faults, _ := play(t, seed*8+1, 25, tt.fault)
				for _, f := range faults {
					found[f.Kind]++
				}
				if found[tt.want] > 0 {
					return
				}
			}
			t.Errorf("found %v, want %q", found, tt.want)
		})
	}
}
