package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/elicit"
)

// view is what the model of a host sees of a result.
type view struct{ text, structured string }

// forwardings are the ways in which hosts pass a result on to their models.
var forwardings = [...]struct {
	name string
	pass func(texts []string, structured string) view
}{
	{"texts", func(texts []string, _ string) view { return view{text: strings.Join(texts, "\n")} }},
	{"structured content", func(_ []string, structured string) view { return view{structured: structured} }},
	{"both", func(texts []string, structured string) view { return view{strings.Join(texts, "\n"), structured} }},
	{"texts of 2 kB", func(texts []string, _ string) view {
		for i, text := range texts {
			texts[i] = text[:min(len(text), 2<<10)]
		}
		return view{text: strings.Join(texts, "\n")}
	}},
	{"joined texts", func(texts []string, _ string) view { return view{text: strings.Join(texts, "")} }},
}

// note is what a model has to know of a result.
type note struct {
	answer  string // contains the answer
	thread  string
	changed string
	next    string // the tool to call
	more    string // the tool that has the whole answer, if it is cut
	refused string // what was not run, and why
}

// hintLine is the line of docs/tasks.md.
var hintLine = regexp.MustCompile(`(?m)^\[thread ([^\s;\]]+); (codex-\w+) [^;]*?(?:; (codex-\w+) has the whole answer)?(?:; changed: (.*))?\]$`)

// refusedLine is a line after it about what was not run.
var refusedLine = regexp.MustCompile("(?m)^Not run: `(.*)` \\((.*)\\)$")

// note reads a view by the shapes of docs/tasks.md. Both parts of a view must say the same.
func (v view) note() (n note, err error) {
	if v.text != "" {
		found := hintLine.FindAllStringSubmatchIndex(v.text, -1)
		if found == nil {
			return n, fmt.Errorf("no hint in …%q", v.text[max(0, len(v.text)-300):])
		}
		last := found[len(found)-1]
		part := func(i int) string { return v.text[max(last[2*i], 0):max(last[2*i+1], 0)] }
		n = note{v.text[:last[0]], part(1), part(4), part(2), part(3), ""}
		for _, line := range refusedLine.FindAllStringSubmatch(v.text[last[1]:], -1) {
			n.refused += line[1] + ": " + line[2] + ". "
		}
	}
	if v.structured == "" {
		return n, nil
	}
	type turn struct {
		ThreadID, Content, Status string
		Changes                   []struct{ Path string }
		Refused                   []struct{ What, Why string }
		Truncated                 struct {
			Content int
			See     string
		}
	}
	var r struct {
		turn
		Threads []turn
	}
	if err := json.Unmarshal([]byte(v.structured), &r); err != nil {
		return n, err
	}
	if len(r.Threads) > 0 {
		r.turn = r.Threads[0]
	}
	s := note{answer: r.Content, thread: r.ThreadID, next: "codex-reply"}
	if r.Status == "running" || r.Status == "waiting" {
		s.next = "codex-wait"
	}
	if r.Truncated.Content > 0 {
		s.more, _, _ = strings.Cut(r.Truncated.See, " ")
	}
	for _, c := range r.Changes {
		s.changed += c.Path
	}
	for _, refusal := range r.Refused {
		s.refused += refusal.What + ": " + strings.TrimPrefix(refusal.Why, "not run: ") + ". "
	}
	if same := (note{s.answer, n.thread, n.changed, n.next, n.more, n.refused}); v.text != "" && s != same {
		return n, fmt.Errorf("%.300q in the texts, %.300q in structured content", same, s)
	}
	return s, nil
}

// host is a client whose name the server does not know.
type host struct {
	*servertest.Client
	answers chan string // of its user, to the questions
}

// call calls a tool, and does for its model what hosts do: it puts questions to the user, and
// waits for tasks.
func (h *host) call(t *testing.T, tool string, arguments map[string]any) *toolResult {
	t.Helper()
	type reply struct {
		toolResult
		ResultType, RequestState, TaskID, Status string
		InputRequests                            map[string]any
		Result                                   *toolResult
	}
	ask := func(method, members string) (r reply) {
		t.Helper()
		if got, err := h.Send(t.Context(), method, members); err != nil || json.Unmarshal(got, &r) != nil {
			t.Fatalf("%s %s: %s, %v", method, members, got, err)
		}
		return r
	}
	// answered are the user's answers. It is empty while the user is away.
	answered := func(questions map[string]any) string {
		var answers []string
		for key := range questions {
			select {
			case a := <-h.answers:
				answers = append(answers, fmt.Sprintf("%q:%s", key, a))
			default:
			}
		}
		return `,"inputResponses":{` + strings.Join(answers, ",") + "}"
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	call := fmt.Sprintf(`"name":%q,"arguments":%s`, tool, text)
	r := ask("tools/call", call)
	for r.ResultType == "input_required" {
		r = ask("tools/call", call+fmt.Sprintf(`,"requestState":%q`, r.RequestState)+answered(r.InputRequests))
	}
	if r.ResultType != "task" {
		return &r.toolResult
	}
	for id := fmt.Sprintf(`"taskId":%q`, r.TaskID); r.Result == nil; r = ask("tasks/get", id) {
		if r.Status == "input_required" {
			ask("tasks/update", id+answered(r.InputRequests))
		}
	}
	return r.Result
}

// ending is how a call may end. The model runs the commands of the turns in a folder of their own.
type ending struct {
	name    string
	turns   func(run func(id, script string) providertest.ToolCall, hold chan struct{}) []providertest.Turn
	answers []string
	timeout time.Duration // of questions; 0 is the default
	rules   approval.Rules
	failed  bool
	want    note // by the result of the call
	end     note // by that of codex-wait after it; the zero value for none
}

// outcomes are those of every engine.
var outcomes = []ending{
	{name: "done", answers: []string{servertest.Accept}, want: note{"It is made.", "", "made", "codex-reply", "", ""}},
	{name: "failed", answers: []string{servertest.Accept}, failed: true, want: note{"no such model", "", "made", "codex-reply", "", ""},
		turns: func(run func(id, script string) providertest.ToolCall, _ chan struct{}) []providertest.Turn {
			return []providertest.Turn{providertest.Call(run("1", "touch made")), {Status: 400, Body: `{"error":{"message":"no such model"}}`}}
		}},
	{name: "declined", answers: []string{servertest.Decline}, want: note{"It is made.", "", "", "codex-reply", "", "touch made': declined. "}},
	{name: "no answer", timeout: time.Second, want: note{"It is made.", "", "", "codex-reply", "", "touch made': no answer within 1 s. "}},
	{name: "denied by a rule", rules: approval.Rules{Deny: [][]string{{"touch"}}},
		want: note{"It is made.", "", "", "codex-reply", "", "touch made': declined: a rule of the user denies this command, or what it may hide: write its programs and their words plainly. "}},
	{name: "a cancelled question", answers: []string{servertest.Accept, servertest.Cancel}, failed: true, want: note{"Turn aborted", "", "made", "codex-reply", "", "touch more': the client cancelled the approval request. "},
		turns: func(run func(id, script string) providertest.ToolCall, _ chan struct{}) []providertest.Turn {
			return []providertest.Turn{providertest.Call(run("1", "touch made")), providertest.Call(run("2", "touch more")), providertest.Say("no")}
		}},
	{name: "interrupted", answers: []string{servertest.Accept}, failed: true, want: note{"Turn aborted", "", "made", "codex-reply", "", ""},
		turns: func(run func(id, script string) providertest.ToolCall, hold chan struct{}) []providertest.Turn {
			return []providertest.Turn{providertest.Call(run("1", "touch made")), {Wait: hold}}
		}},
	{name: "running in the background", want: note{"codex-wait", "", "", "codex-wait", "", ""}, end: note{"It is made.", "", "made", "codex-reply", "", ""},
		turns: func(run func(id, script string) providertest.ToolCall, hold chan struct{}) []providertest.Turn {
			return []providertest.Turn{{Wait: hold, ToolCalls: []providertest.ToolCall{run("1", "touch made")}}, providertest.Say("It is made.")}
		}},
	{name: "waiting for an answer", want: note{"touch made", "", "", "codex-wait", "", ""}, end: note{"It is made.", "", "made", "codex-reply", "", ""}},
	{name: "cut", want: note{"a long story", "", "", "codex-reply", "codex-show", ""},
		turns: func(func(id, script string) providertest.ToolCall, chan struct{}) []providertest.Turn {
			return []providertest.Turn{providertest.Say(strings.Repeat("a long story, ", 1000) + "THE END")}
		}},
}

// engineForwarding checks that a model that sees only a part of a result knows the answer, the
// thread, what has changed and what to call next, and can do that. start returns an engine that
// asks for every command, with the model; run is the model's call of a command. An outcome that every
// era has in the same way is played in one.
func engineForwarding(t *testing.T, start func(*testing.T, *providertest.Server) engine.Engine, run func(id, script string) providertest.ToolCall, more ...ending) {
	for at, era := range append(slices.Clone(eras), servertest.Polls) {
		t.Run(string(era), func(t *testing.T) {
			model := providertest.New()
			t.Cleanup(model.Close)
			e := start(t, model)
			for i, o := range slices.Concat(outcomes, more) {
				if i%3 != at && o.timeout == 0 && o.end == (note{}) && len(o.answers) > 0 {
					continue
				}
				if o.timeout > 0 && era == servertest.Rounds { // the call ends after some rounds
					o.want, o.end = note{"touch made", "", "", "codex-wait", "", ""}, o.want
				}
				t.Run(o.name, func(t *testing.T) {
					again := providertest.Turn{Match: "go on", Repeat: true, Text: []string{"I go on."}}
					hold := make(chan struct{})
					turns := []providertest.Turn{providertest.Call(run("1", "touch made")), providertest.Say("It is made.")}
					if o.turns != nil {
						turns = o.turns(run, hold)
					}
					model.Reset(append([]providertest.Turn{again}, turns...)...)

					record := &servertest.Journal{}
					server := codexserver.New(e, &codexserver.Options{
						Home: t.TempDir(), Calls: codexserver.CallOptions{MaxResult: 4096}, Record: record, Tasks: codexserver.TaskOptions{Grace: -1},
						Approvals: elicit.Options{Timeout: o.timeout}, Rules: o.rules,
					})
					h := &host{answers: make(chan string, 2)}
					for _, a := range o.answers {
						h.answers <- a
					}
					h.Client = servertest.Join(t, server, servertest.Host{Era: era, Answer: func(ctx context.Context) (string, error) {
						select {
						case a := <-h.answers:
							return a, nil
						case <-ctx.Done():
							return "", ctx.Err()
						}
					}})
					dir, err := filepath.EvalSymlinks(t.TempDir())
					if err != nil {
						t.Fatal(err)
					}
					arguments := map[string]any{"prompt": "do it", "cwd": dir}
					waits := o.name == "waiting for an answer"
					if o.name == "running in the background" || waits && era != servertest.Rounds {
						arguments["background"] = true
					}
					interrupted := make(chan struct{})
					close(interrupted)
					if o.name == "interrupted" {
						interrupted = make(chan struct{})
						before := len(model.Requests())
						go func() {
							defer close(interrupted)
							if err := model.Await(t.Context(), before+2); err != nil {
								t.Error(err)
								return
							}
							var line struct{ ThreadID string }
							decision, _, _ := strings.Cut(record.String(), "\n") // what ran is after it
							if err := json.Unmarshal([]byte(decision), &line); err != nil {
								t.Error(err)
							}
							(&host{Client: h.Client}).call(t, "codex-interrupt", map[string]any{"threadId": line.ThreadID})
						}()
					}
					first := h.call(t, "codex", arguments)
					<-interrupted
					var thread struct{ ThreadID string }
					if err := json.Unmarshal(first.StructuredContent, &thread); err != nil || thread.ThreadID == "" {
						t.Fatalf("%s: %v", first.StructuredContent, err)
					}
					for arguments["background"] != nil && waits && !strings.Contains(string(first.StructuredContent), `"waiting"`) {
						first = h.call(t, "codex-wait", map[string]any{"threadIds": []string{thread.ThreadID}, "seconds": 0.1})
					}
					if first.IsError != o.failed {
						t.Errorf("isError %t: %q", first.IsError, first.texts())
					}
					first.check(t, o.want.answer)
					release := func() {
						if hold != nil && o.end.next != "" && o.timeout == 0 {
							h.answers <- servertest.Accept
							close(hold)
							hold = nil
						}
					}
					// sees returns what the model notes of a result.
					sees := func(t *testing.T, i int, r *toolResult, want note) note {
						t.Helper()
						got, err := forwardings[i].pass(r.texts(), string(r.StructuredContent)).note()
						if err != nil {
							t.Fatal(err)
						}
						if !strings.Contains(got.answer, want.answer) {
							t.Errorf("no %q in %.300q", want.answer, got.answer)
						}
						if !strings.Contains(got.refused, want.refused) || want.refused == "" && got.refused != "" {
							t.Errorf("not run: %q, want %q", got.refused, want.refused)
						}
						want.answer, want.thread, want.refused = got.answer, thread.ThreadID, got.refused
						if got != want {
							t.Errorf("the model notes %.300q, want %.300q", got, want)
						}
						return got
					}
					var known [len(forwardings)]note
					for i, f := range forwardings {
						t.Run(f.name, func(t *testing.T) {
							known[i] = sees(t, i, first, o.want)
							if known[i].next == "codex-wait" {
								release()
								r := h.call(t, known[i].next, map[string]any{"threadIds": []string{known[i].thread}})
								for o.timeout > 0 && strings.Contains(string(r.StructuredContent), `"waiting"`) {
									r = h.call(t, known[i].next, map[string]any{"threadIds": []string{known[i].thread}})
								}
								r.check(t, "")
								known[i] = sees(t, i, r, o.end)
							}
							if known[i].more != "" {
								r := h.call(t, known[i].more, map[string]any{"threadId": known[i].thread, "what": "transcript", "offset": 12_000})
								if all := strings.Join(r.texts(), ""); !strings.Contains(all, "THE END") {
									t.Errorf("the whole answer ends with %q", all[max(0, len(all)-100):])
								}
							}
						})
					}
					// All models know the same, so one calls what they know to be next.
					r := h.call(t, known[0].next, map[string]any{"threadId": known[0].thread, "prompt": "go on"})
					if r.IsError || r.Content[0].Text != "I go on." {
						t.Errorf("%s: %q", known[0].next, r.texts())
					}
					for i := range forwardings {
						if known[i].next != known[0].next || known[i].thread != known[0].thread {
							t.Errorf("%s: %+v, others know %+v", forwardings[i].name, known[i], known[0])
						}
						sees(t, i, r, note{"I go on.", "", "", "codex-reply", "", ""})
					}
				})
			}
		})
	}
}

// check checks the blocks: the first one is unchanged, and the further one is for the model and
// can be joined with the first.
func (r *toolResult) check(t *testing.T, answer string) {
	t.Helper()
	if len(r.Content) < 2 || len(r.Content[0].Annotations.Audience) != 0 {
		t.Errorf("blocks %q", r.texts())
		return
	}
	r.joins(t)
	if first := r.Content[0].Text; answer == "It is made." && first != answer {
		t.Errorf("the first block is %q", first)
	}
	hint := r.Content[len(r.Content)-1]
	if !slices.Equal(hint.Annotations.Audience, []string{"assistant"}) || !strings.HasPrefix(hint.Text, "\n[") || !r.IsError && len(hint.Text) > 400 {
		t.Errorf("the further block is %q, for %q", hint.Text, hint.Annotations.Audience)
	}
}

func TestForwardingOfTheNativeEngine(t *testing.T) {
	engineForwarding(t, func(t *testing.T, model *providertest.Server) engine.Engine {
		home := servertest.CodexHome(t, model.BaseURL(), asksAlways)
		e, err := native.New(&native.Options{CodexHome: home})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		return e
	}, func(id, script string) providertest.ToolCall { return providertest.Shell(id, "sh", "-c", script) },
		ending{
			name: "refused by policy", want: note{"It is not.", "", "", "codex-reply", "", `escalated permissions are not available under the approval policy "untrusted". `},
			turns: func(func(id, script string) providertest.ToolCall, chan struct{}) []providertest.Turn {
				return []providertest.Turn{providertest.Call(providertest.Tool("1", "shell", map[string]any{"command": []string{"touch", "made"}, "with_escalated_permissions": true, "justification": "because"})), providertest.Say("It is not.")}
			},
		})
}

// asksAlways is the configuration of an engine that asks for every command that may change
// something, and runs it without a sandbox.
const asksAlways = `approval_policy = "untrusted"
sandbox_mode = "danger-full-access"`
