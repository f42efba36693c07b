package approve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// endOf returns the end that a letter stands for. A capital is an answer that does not count.
func endOf(letter rune) end {
	q := &elicit.Question{}
	says := func(answer string) elicit.Outcome { return q.Read([]byte(answer), nil) }
	client := func(out elicit.Outcome) end {
		return end{by: approval.ByClient, client: NewClients(context.Background(), setting.Asking{}).Client(string(letter)), out: out}
	}
	lower := []rune(strings.ToLower(string(letter)))[0]
	var e end
	switch lower {
	case 'a':
		e = client(says(`{"action":"accept"}`))
	case 's':
		e = client(says(`{"action":"accept","content":{"decision":"approved_for_session"}}`))
	case 'd':
		e = client(says(`{"action":"decline"}`))
	case 'c':
		e = client(says(`{"action":"cancel"}`))
	case 'n':
		e = client(says(`{"action":"yes"}`))
	case 'w':
		e = end{by: "desk", out: elicit.Outcome{Decision: "yes"}} // a word that is no decision
	case 'e':
		e = client(q.ReadError(&jsonrpc.Error{Code: 1, Message: "no"}, nil))
	case 'u':
		e = client(q.ReadError(elicit.ErrUnsupported, nil))
	case 'i':
		e = client(q.ReadError(context.Canceled, nil))
	case 'g':
		e = client(q.ReadError(jsonrpc.ErrClosed, nil))
	case 'f':
		e = end{by: "desk", err: errOnlyPage, out: elicit.Outcome{Decision: elicit.Approved}}
	case 't':
		e = end{all: late, out: q.ReadError(context.DeadlineExceeded, nil)}
	case 'o':
		e = end{all: over, out: q.ReadError(context.Canceled, nil)}
	default:
		e = end{all: unable, out: q.ReadError(elicit.ErrUnsupported, nil)}
	}
	if letter != lower && e.by != "" && e.err == nil {
		e.verdict = verdict{automatic: string(letter), void: true}
	}
	return e
}

func endsOf(letters string) (all ends) {
	for _, letter := range letters {
		all = append(all, endOf(letter))
	}
	return all
}

var someRequest = &approval.Request{Subject: approval.Command{}, Question: &elicit.Question{}}

// TestDecision has the rows of the table of [ends.decision]. Each letter is an end: an answer that accepts, accepts for
// the session, declines, cancels, is not understood, is no word; an error, unable, interrupted, gone, failed; and for
// all places the time, the turn over, or - for no place. In capitals it does not count.
func TestDecision(t *testing.T) {
	const alone = "!" // nobody remains elsewhere
	for _, tt := range []struct{ ends, want string }{
		{"o", "abort interrupted nobody"}, {"aoAf", "abort interrupted nobody"}, {"to", "abort interrupted nobody"},

		{"a", "approved  client a"}, {"s", "approved_for_session  client s"}, {"d", "denied declined client d"},
		{"c", "abort cancelled client c"}, {"n", "denied not_understood client n"}, {"w", "denied  desk"},
		{"sa", "approved  client a"}, {"ad", "denied declined client d"}, {"ca", "abort cancelled client c"},
		{"dn", "denied declined client d"}, {"nd", "denied not_understood client n"}, {"aw", "denied  desk"},
		{"fegat", "approved  client a"},
		{"DaAf", "approved  client a; D. That did not count; the decision came from another client.; A. That did not count; the decision came from another client."},

		{"t", "denied timeout nobody"}, {"Aet", "denied timeout nobody"}, {"ft", "denied timeout nobody; F"},

		{"eDg" + alone, "denied declined client D"}, {"CD" + alone, "abort cancelled client C"}, {"DaE" + alone, "denied declined client D"}, {"eE" + alone, "denied client_error nobody"},
		{"gE" + alone, "denied client_error nobody"}, {"Et" + alone, "denied timeout nobody"}, {"Ea" + alone, "approved  client a"},

		{"A", "denied declined nobody open; A. That did not count."}, {"AD", "denied declined nobody open; A. That did not count.; D. That did not count."},
		{"D", "denied declined nobody open; D"}, {"C", "abort cancelled nobody open; C"}, {"fD", "denied declined nobody open; D; F"},
		{"e", "denied client_error nobody open"}, {"eA", "denied client_error nobody open"}, {"eg", "denied client_error nobody open"},
		{"u", "denied unsupported nobody open"}, {"g", "abort peer_gone nobody open"}, {"i", "abort interrupted nobody open"},
		{"ge-", "abort peer_gone nobody open"},

		{"-", "denied unsupported nobody open"}, {"f-", "denied unsupported nobody open; F"}, {"f", "denied  nobody open; F"}, {"", "denied  nobody open"},
	} {
		letters, isAlone := strings.CutSuffix(tt.ends, alone)
		d, open := endsOf(letters).decision(someRequest, !isAlone, lasting{})
		got := fmt.Sprintf("%s %s %s", d.Decision, d.Reason, d.By)
		if d.Client != "" {
			got += " " + d.Client
		}
		if open {
			got += " open"
		}
		got = strings.Join(append([]string{got}, d.Remarks...), "; ")
		failed := fmt.Sprintf("The desk could not show the question: %v.", errOnlyPage)
		must.Equal(t, tt.ends, strings.ReplaceAll(tt.want, "; F", "; "+failed), got)
	}
}

// permutations calls f with all orders of the letters.
func permutations(letters []rune, from int, f func(string)) {
	if from == len(letters) {
		f(string(letters))
	}
	for i := from; i < len(letters); i++ {
		next := slices.Clone(letters)
		next[from], next[i] = next[i], next[from]
		permutations(next, from+1, f)
	}
}

// FuzzDecision has ends arrive at the same time, in all orders. What runs depends on no order: something runs only if
// an answer that counts approves, and no answer refuses. Once a question is closed, no further end loosens its decision.
func FuzzDecision(f *testing.F) {
	const kinds = "asdcnweuigfto-ASDCNWEUIG"
	for _, first := range kinds {
		f.Add(string(first), false)
		for _, second := range kinds {
			f.Add(string([]rune{first, second}), true)
			f.Add(string([]rune{first, second, 'a'}), false)
		}
	}
	f.Add("DaAfs", true)
	f.Add("DCEgt", false)
	f.Fuzz(func(t *testing.T, letters string, elsewhere bool) {
		some := slices.DeleteFunc([]rune(letters), func(r rune) bool { return !strings.ContainsRune(kinds, r) })
		some = some[:min(len(some), 5)]
		strictest := elicit.Decision("") // of the answers and the end of the turn: an oracle that knows only letters
		counted := string(some)
		if !elsewhere {
			counted = strings.NewReplacer("D", "d", "C", "c", "N", "n", "W", "w").Replace(counted)
		}
		for decision, of := range map[elicit.Decision]string{elicit.ApprovedForSession: "s", elicit.Approved: "a", elicit.Denied: "dnw", elicit.Abort: "co"} {
			if strings.ContainsAny(counted, of) && (strictest == "" || decision.Stricter(strictest)) {
				strictest = decision
			}
		}
		permutations(some, 0, func(order string) {
			all := endsOf(order)
			d, _ := all.decision(someRequest, elsewhere, lasting{})
			if strictest != "" && d.Decision != strictest {
				t.Fatalf("%q, elsewhere %v: %s, want %s", order, elsewhere, d.Decision, strictest)
			}
			if d.Decision.Approves() && (d.Decision != strictest || d.By == approval.ByNobody) || !d.Decision.Valid() {
				t.Fatalf("%q, elsewhere %v: %s by %s, but the answers are %q", order, elsewhere, d.Decision, d.By, strictest)
			}
			for n := range all {
				before, open := all[:n].decision(someRequest, elsewhere, lasting{})
				after, still := all[:n+1].decision(someRequest, elsewhere, lasting{})
				answered := before.By != approval.ByNobody
				if !open && still || answered && before.Decision.Stricter(after.Decision) {
					t.Fatalf("%q, elsewhere %v: %s is loosened to %s", order[:n+1], elsewhere, before.Decision, after.Decision)
				}
			}
		})
	})
}
