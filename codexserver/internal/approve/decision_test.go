package approve

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// endOf returns the end that a letter stands for, with policies for a question that nobody answers. A capital is an answer
// that does not count.
func endOf(letter rune, o *elicit.Options) end {
	q := &elicit.Question{}
	says := func(answer string) elicit.Outcome { return q.Read([]byte(answer), nil) }
	client := func(out elicit.Outcome) end {
		c := NewClients(context.Background(), setting.Asking{}).Client(string(letter))
		return end{by: approval.ByClient, client: c, out: out, waited: time.Second}
	}
	approved := elicit.Outcome{Decision: elicit.Approved}
	lower := []rune(strings.ToLower(string(letter)))[0]
	var e end
	switch lower {
	case 'a':
		e = client(says(`{"action":"accept"}`))
	case 's':
		e = client(says(`{"action":"accept","content":{"decision":"approved_for_session"}}`))
	case 'l':
		e = client(elicit.Outcome{Decision: elicit.ApprovedAlways})
	case 'q':
		e = client(approved)
		e.waited = 5 * time.Millisecond
	case 'k':
		e = end{by: "desk", out: approved, waited: time.Second}
	case 'r':
		e = end{all: ruled, by: approval.ByRule, out: approved}
	case 'v':
		e = end{all: ruled, by: approval.ByRule, out: elicit.Outcome{Decision: elicit.ApprovedAlways}}
	case 'x':
		e = end{all: ruled, by: approval.ByRule, out: denied("no", "", slog.LevelInfo)}
	case '1':
		e = end{all: late, out: approved}
	case '2':
		e = end{all: over, out: approved}
	case '3':
		e = end{all: unable, out: approved}
	case 'd':
		e = client(says(`{"action":"decline"}`))
	case 'c':
		e = client(says(`{"action":"cancel"}`))
	case 'n':
		e = client(says(`{"action":"yes"}`))
	case 'w':
		e = end{by: "desk", out: elicit.Outcome{Decision: "yes"}, waited: time.Second} // a word that is no decision
	case 'e':
		e = client(q.ReadError(&jsonrpc.Error{Code: 1, Message: "no"}, o))
	case 'u':
		e = client(q.ReadError(elicit.ErrUnsupported, o))
	case 'i':
		e = client(q.ReadError(context.Canceled, nil))
	case 'g':
		e = client(q.ReadError(jsonrpc.ErrClosed, nil))
	case 'f':
		e = end{by: "desk", err: errOnlyPage, out: elicit.Outcome{Decision: elicit.Approved}}
	case 't':
		e = end{all: late, out: q.ReadError(context.DeadlineExceeded, o)}
	case 'o':
		e = end{all: over, out: q.ReadError(context.Canceled, nil)}
	default:
		e = end{all: unable, out: q.ReadError(elicit.ErrUnsupported, o)}
	}
	if letter != lower && e.all == 0 && e.err == nil {
		e.verdict = verdict{automatic: string(letter), void: true}
	}
	return e
}

func endsOf(letters string, o *elicit.Options) (all ends) {
	for _, letter := range letters {
		all = append(all, endOf(letter, o))
	}
	return all
}

var someRequest = &approval.Request{Subject: approval.Command{}, Question: &elicit.Question{}}

// TestDecision has the rows of the table of [ends.decision]. Each letter is an end: an answer that accepts, accepts for
// the session, accepts a lasting rule, accepts too quickly, accepts at the desk, declines, cancels, is not understood, is no
// word; an error, unable, interrupted, gone, failed; for all places the time, the turn over, or - for no place; and a rule
// that approves, one that approves always, one that denies (x). In capitals it does not count.
func TestDecision(t *testing.T) {
	const alone = "!" // nobody remains elsewhere
	for _, tt := range []struct{ ends, want string }{
		{"r", "approved  rule"}, {"x", "denied declined rule"}, {"v", "denied not_understood rule"}, {"od", "abort interrupted nobody"},

		{"o", "abort interrupted nobody"}, {"aoAf", "abort interrupted nobody"}, {"to", "abort interrupted nobody"},

		{"a", "approved  client a"}, {"s", "approved_for_session  client s"}, {"d", "denied declined client d"},
		{"c", "abort cancelled client c"}, {"n", "denied not_understood client n"}, {"w", "denied  desk"},
		{"l", "approved_always  client l"}, {"ls", "approved_for_session  client s"}, {"k", "approved  desk"}, {"q", "approved  client q"},
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
		d, open := endsOf(letters, nil).decision(someRequest, !isAlone, lasting{offered: true})
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
	const kinds = "aslqkdcnweuigfto-ASLDCNWEUIG"
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
		for decision, of := range map[elicit.Decision]string{elicit.ApprovedAlways: "l", elicit.ApprovedForSession: "s", elicit.Approved: "aqk", elicit.Denied: "dnw", elicit.Abort: "co"} {
			if strings.ContainsAny(counted, of) && (strictest == "" || decision.Stricter(strictest)) {
				strictest = decision
			}
		}
		permutations(some, 0, func(order string) {
			all := endsOf(order, nil)
			d, _ := all.decision(someRequest, elsewhere, lasting{offered: true})
			if strictest != "" && d.Decision != strictest {
				t.Fatalf("%q, elsewhere %v: %s, want %s", order, elsewhere, d.Decision, strictest)
			}
			if d.Decision.Approves() && (d.Decision != strictest || d.By == approval.ByNobody) || !d.Decision.Valid() {
				t.Fatalf("%q, elsewhere %v: %s by %s, but the answers are %q", order, elsewhere, d.Decision, d.By, strictest)
			}
			for n := range all {
				before, open := all[:n].decision(someRequest, elsewhere, lasting{offered: true})
				after, still := all[:n+1].decision(someRequest, elsewhere, lasting{offered: true})
				answered := before.By != approval.ByNobody
				if !open && still || answered && before.Decision.Stricter(after.Decision) {
					t.Fatalf("%q, elsewhere %v: %s is loosened to %s", order[:n+1], elsewhere, before.Decision, after.Decision)
				}
			}
		})
	})
}

// subjects are one of each kind, and those of a kind that differ in who may approve them.
var subjects = map[string]approval.Subject{
	"a command":           approval.Command{Command: []string{"make"}},
	"a command, confined": approval.Command{Command: []string{"make"}, Confinable: true},
	"a command, human":    approval.Command{Command: []string{"make"}, Confinable: true, Human: true},
	"a patch":             approval.Patch{},
	"a host":              approval.Network{Hostname: "a.com"},
	"more access":         approval.Access{},
	"an overruling":       approval.Overrule{},
	"another":             approval.Other{Ask: &elicit.Question{}},
}

// TestWhoApproves walks all pairs of ends of all kinds of questions, with all policies and all that can become of a lasting
// rule: something is approved only if a person approves it, or a program or a rule where they may, and nobody who counts
// refuses. Nothing is approved for longer than it was offered.
func TestWhoApproves(t *testing.T) {
	kinds := map[string]bool{}
	for _, s := range subjects {
		kinds[reflect.TypeOf(s).Name()] = true
	}
	must.Equal(t, "the kinds", subjectTypes(t), slices.Sorted(maps.Keys(kinds)))
	const letters = "aslqkdcnweuigfto-rvx123ASLQKDCNWEUIG"
	rules := []lasting{{}, {offered: true}, {offered: true, confined: true, words: "rule"}, {offered: true, err: errors.New("full")}}
	for name, subject := range subjects {
		anyone, overrules := subject.Approver() == approval.Anyone, subject.Effect() == approval.Overrules
		person, denies := "aslk", "dcnw"
		approves := person
		if anyone {
			approves += "qr"
		}
		for _, policy := range []elicit.Policy{elicit.PolicyDeny, elicit.PolicyAbort, elicit.PolicyFailCall} {
			o := &elicit.Options{OnTimeout: policy, OnError: policy, OnUnsupported: policy}
			for _, pair := range pairs(letters) {
				all := endsOf(pair, o)
				for i, rule := range rules {
					for _, once := range []bool{false, true} {
						for _, elsewhere := range []bool{false, true} {
							r := &approval.Request{Subject: subject, Question: &elicit.Question{Once: once}}
							d, _ := all.decision(r, elsewhere, rule)
							has := func(any string) bool { return strings.ContainsAny(pair, any) }
							ruled := anyone && has("r") || has("vx") && (anyone || has("x"))
							fault := ""
							switch {
							case !d.Decision.Valid():
								fault = "no decision"
							case d.Decision == elicit.Abort && overrules && !has("cC"):
								fault = "the turn ends, which does not wait"
							case !d.Decision.Approves():
							case !has(approves):
								fault = "nobody who may has approved"
							case d.By == approval.ByNobody, d.By == approval.ByRule && !anyone:
								fault = "approved by who may not"
							case !ruled && (has(denies) || has("o2")):
								fault = "somebody has refused"
							case d.Decision == elicit.ApprovedForSession && (once || !has("s")):
								fault = "for the session"
							case d.Decision == elicit.ApprovedAlways && (!has("l") || !rule.offered || rule.err != nil || d.RuleWords != rule.words):
								fault = "always"
							case d.Decision == elicit.ApprovedAlways && d.Confined != rule.confined:
								fault = "a lasting rule outside the sandbox"
							}
							if fault != "" {
								t.Fatalf("%s: %s, %q, %q, rule %d, once %t, elsewhere %t: %s by %s",
									fault, name, policy, pair, i, once, elsewhere, d.Decision, d.By)
							}
						}
					}
				}
			}
		}
	}
}

// pairs returns each letter, and each two.
func pairs(letters string) (all []string) {
	for _, first := range letters {
		all = append(all, string(first))
		for _, second := range letters {
			all = append(all, string([]rune{first, second}))
		}
	}
	return all
}

// subjectTypes returns the names of the types that say who may approve them, which each kind of question must.
func subjectTypes(t *testing.T) (names []string) {
	files := must.Get(filepath.Glob("../../approval/*.go"))(t)
	for _, file := range files {
		for _, decl := range must.Get(parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution))(t).Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "Approver" {
				names = append(names, f.Recv.List[0].Type.(*ast.Ident).Name)
			}
		}
	}
	slices.Sort(names)
	return names
}
