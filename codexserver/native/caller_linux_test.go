package native_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox/sandboxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
)

// yard has the folders of a test of callers: a server's start folder, and places outside of it.
type yard struct {
	home, start, other string
	bench              *bench
	limit              time.Duration // of questions
}

// newYard makes a yard with an engine whose model writes wherever it can in its first turn.
func newYard(t *testing.T, configuration string) *yard {
	y := &yard{limit: 400 * time.Millisecond, home: sandboxtest.Outside(t), other: sandboxtest.Outside(t)}
	t.Setenv("HOME", y.home)
	work := filepath.Join(y.home, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	if y.start, err = os.MkdirTemp(work, ""); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(y.home, ".ssh"), filepath.Join(y.home, ".config", "autostart")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(y.home, ".ssh"), filepath.Join(y.start, "link")); err != nil {
		t.Fatal(err)
	}
	y.bench = setup(t, configuration, native.Limits{})
	y.model()
	return y
}

// model makes the model write wherever it can in the next turn.
func (y *yard) model() {
	y.bench.provider.Add(
		providertest.Call(providertest.Shell("c1", "sh", "-c", "for f in "+strings.Join(y.targets(), " ")+"; do echo x > $f; done")),
		providertest.Call(providertest.Shell("c2", "apply_patch", "*** Begin Patch\n*** Add File: "+y.targets()[0]+".patched\n+x\n*** End Patch")),
		providertest.Say("done"),
	)
}

// targets are files that no call may write unasked.
func (y *yard) targets() []string {
	return []string{
		filepath.Join(y.other, "written"), filepath.Join(y.home, "written"), filepath.Join(y.home, ".ssh", "authorized_keys"),
		filepath.Join(y.home, ".config", "autostart", "x.desktop"),
	}
}

// written returns the files outside of the start folder that exist.
func (y *yard) written() (all []string) {
	for _, path := range append(y.targets(), y.targets()[0]+".patched") {
		if _, err := os.Lstat(path); err == nil {
			all = append(all, path)
		}
	}
	return all
}

// serve returns a server that was started in the yard's start folder.
func (y *yard) serve(access setting.FullAccess) *codexserver.Server {
	return codexserver.New(y.bench.engine, &codexserver.Options{
		Folder: y.start, Approvals: elicit.Options{Timeout: y.limit}, Calls: codexserver.CallOptions{FullAccess: access},
	})
}

// in fills in the folders of arguments.
func (y *yard) in(arguments string) string {
	return strings.NewReplacer("START", y.start, "HOME", y.home, "OTHER", y.other).Replace(arguments)
}

// hostile are arguments of codex beside the prompt, and lines of the configuration that they go beyond.
var hostile = []struct {
	name, arguments, configuration string
}{
	{"full access", `"sandbox":"danger-full-access","approval-policy":"never"`, confinedUntrusted},
	{"full access, asking", `"sandbox":"danger-full-access","approval-policy":"on-request"`, confinedUntrusted},
	{"full access by config", `"config":{"sandbox_mode":"danger-full-access","approval_policy":"never"}`, confinedUntrusted},
	{"full access by profile", `"profile":"wide"`, confinedUntrusted + wideProfile},
	{"no questions in full access", `"approval-policy":"never"`, ""},
	{"other questions in full access", `"approval-policy":"on-request"`, ""},
	{"questions after failures in full access", `"config":{"approval_policy":"on-failure"}`, ""},
	{"a profile without questions in full access", `"profile":"quiet"`, "---\nwire_api = \"chat\"\n[profiles.quiet]\napproval_policy = \"never\""},
	{"secrets of the home", `"sandbox":"workspace-write","approval-policy":"never","cwd":"HOME/.ssh"`, confinedUntrusted},
	{"programs that start by themselves", `"sandbox":"workspace-write","approval-policy":"never","cwd":"HOME/.config/autostart"`, confinedUntrusted},
	{"the home", `"sandbox":"workspace-write","approval-policy":"never","cwd":"HOME"`, confinedUntrusted},
	{"the root", `"sandbox":"workspace-write","approval-policy":"never","cwd":"/"`, confinedUntrusted},
	{"another folder", `"sandbox":"workspace-write","approval-policy":"never","cwd":"OTHER"`, confinedUntrusted},
	{"a link in the start folder", `"sandbox":"workspace-write","approval-policy":"never","cwd":"START/link"`, confinedUntrusted},
	{"a way out of the start folder", `"sandbox":"workspace-write","approval-policy":"never","cwd":"START/../../.ssh"`, confinedUntrusted},
	{"another folder of a wide configuration", `"approval-policy":"never","cwd":"OTHER"`, confined("workspace-write", "untrusted")},
	{"the root in a wide configuration", `"approval-policy":"never","cwd":"/"`, confined("workspace-write", "untrusted")},
	{"a writable root", `"approval-policy":"never","config":{"sandbox_mode":"workspace-write","sandbox_workspace_write":{"writable_roots":["OTHER"]}}`, confinedUntrusted},
	{"a dotted writable root", `"approval-policy":"never","sandbox":"workspace-write","config":{"sandbox_workspace_write.writable_roots":["OTHER","HOME/.ssh"]}`, confinedUntrusted},
	{"temporary folders", `"approval-policy":"never","cwd":"START","config":{"sandbox_workspace_write.exclude_slash_tmp":false}`,
		confined("workspace-write", "untrusted") + "\n[sandbox_workspace_write]\nexclude_slash_tmp = true"},
	{"the network", `"approval-policy":"never","sandbox":"workspace-write","config":{"sandbox_workspace_write.network_access":true}`, confinedUntrusted},
	{"a search of the web", `"web-search":true`, "---\nwire_api = \"responses\""},
	{"a search of the web by config", `"config":{"tools":{"web_search":true}}`, "---\nwire_api = \"responses\""},
	{"another provider", `"config":{"model_provider":"other"}`, confinedUntrusted + "\n[model_providers.other]\nbase_url = \"http://127.0.0.1:1/v1\""},
	{"its profile", `"profile":"other"`, confinedUntrusted + "\n[model_providers.other]\nbase_url = \"http://127.0.0.1:1/v1\"\n[profiles.other]\nmodel_provider = \"other\""},
}

var (
	confinedUntrusted = confined("read-only", "untrusted")
	wideProfile       = "\n[profiles.wide]\nsandbox_mode = \"danger-full-access\"\napproval_policy = \"never\""
)

// confined is a configuration for setup in place of its own policies.
func confined(mode, policy string) string {
	return fmt.Sprintf("profile = \"own\"\n---\nwire_api = \"chat\"\n[profiles.own]\nsandbox_mode = %q\napproval_policy = %q", mode, policy)
}

// callers are clients, by what they do with a question.
var callers = []struct {
	name   string
	answer servertest.Answer
	says   []string // words of the result
}{
	{"cannot ask", nil, []string{"nothing was started", "calls.full_access", "cannot show approval requests"}},
	{"declines", servertest.Say(servertest.Decline), []string{"nothing was started", "calls.full_access", "declined"}},
	{"never answers", servertest.Never, []string{"no answer"}},
	{"fails", servertest.Fail, []string{"nothing was started", "calls.full_access"}},
	{"accepts by itself", servertest.Say(servertest.Accept), []string{"nothing was started", "calls.full_access", "faster than a person can read"}},
}

// TestHostileCaller calls the tools with everything that goes beyond the configuration: nothing is
// written outside, and the result names the key that could allow it.
func TestHostileCaller(t *testing.T) {
	sandboxtest.Need(t)
	for i, tt := range hostile {
		for j, who := range callers {
			for _, modern := range []bool{false, true} {
				if who.name == "never answers" && i%4 != 0 { // each waits for the limit
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/modern %t/%d-%d", tt.name, who.name, modern, i, j), func(t *testing.T) {
					y := newYard(t, strings.TrimPrefix(tt.configuration, "\n"))
					arguments := y.in(`{"prompt":"go",` + tt.arguments + `}`)
					var result string
					if modern {
						result = callModern(t, servertest.Dial(t, y.serve(""), nil), who.answer, "codex", arguments)
					} else {
						result = servertest.Connect(t, y.serve(""), who.answer).CallTool(t, "codex", arguments)
					}
					if got := y.written(); len(got) > 0 {
						t.Errorf("written: %q\n%s", got, result)
					}
					for _, want := range who.says {
						if !strings.Contains(result, want) {
							t.Errorf("%q is not in the result: %s", want, result)
						}
					}
					if n := len(y.bench.provider.Requests()); n > 0 {
						t.Errorf("%d requests reached the model", n)
					}
				})
			}
		}
	}
}

// callModern calls a tool as clients of 2026-07-28 do, and answers its questions.
func callModern(t *testing.T, c *servertest.Client, answer servertest.Answer, tool, arguments string) string {
	t.Helper()
	meta := servertest.Meta
	if answer != nil {
		meta = servertest.Capable(`"elicitation":{"form":{}}`)
	}
	more := ""
	for range 5 {
		result := c.Ask(t, "tools/call", `{"name":"`+tool+`","arguments":`+arguments+more+`,"_meta":`+meta+`}`)
		var input struct {
			InputRequests map[string]json.RawMessage `json:"inputRequests"`
			RequestState  string                     `json:"requestState"`
		}
		if err := json.Unmarshal([]byte(result), &input); err != nil || len(input.InputRequests) == 0 {
			return result
		}
		responses := map[string]json.RawMessage{}
		for key := range input.InputRequests {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // longer than a question is open
			said, err := answer(ctx)
			cancel()
			if err != nil { // clients of this era have no errors
				said = `{"action":"?"}`
			}
			responses[key] = json.RawMessage(said)
		}
		said, err := json.Marshal(responses)
		if err != nil {
			t.Fatal(err)
		}
		more = fmt.Sprintf(`,"requestState":%q,"inputResponses":%s`, input.RequestState, said)
	}
	t.Fatal("the questions do not end")
	return ""
}

// TestAskedCaller approves what a call asks for, once: it holds for the conversation on this server,
// and after a restart a conversation has no more than the configuration gives.
func TestAskedCaller(t *testing.T) {
	sandboxtest.Need(t)
	approves := servertest.After(400*time.Millisecond, servertest.Accept)
	for _, tt := range []struct {
		name, arguments string
		questions       int
		writes, again   bool // outside, in the first turn, and in one of a fresh server
		access          setting.FullAccess
		answer          servertest.Answer
	}{
		{"approved", `"sandbox":"danger-full-access","approval-policy":"never"`, 1, true, false, "", approves},
		{"allowed by the settings", `"sandbox":"danger-full-access","approval-policy":"never"`, 0, true, true, setting.FullAccessAllow, nil},
		{"refused by the settings", `"sandbox":"danger-full-access","approval-policy":"never"`, 0, false, false, setting.FullAccessDeny, approves},
		{"the start folder", `"sandbox":"workspace-write","approval-policy":"never","cwd":"START"`, 0, false, false, "", approves},
		{"less", `"sandbox":"read-only","approval-policy":"untrusted"`, 2, false, false, "", servertest.Say(servertest.Decline)}, // about the command and the patch
		{"nothing", `"approval-policy":"never"`, 0, false, false, "", approves},
	} {
		t.Run(tt.name, func(t *testing.T) {
			y := newYard(t, confinedUntrusted)
			y.limit = time.Minute
			c := servertest.Connect(t, y.serve(tt.access), tt.answer)
			result := c.CallTool(t, "codex", y.in(`{"prompt":"go",`+tt.arguments+`}`))
			if got := len(c.Received("elicitation/create")); got != tt.questions {
				t.Errorf("%d questions, want %d: %s", got, tt.questions, result)
			}
			if got := len(y.written()); got > 0 != tt.writes {
				t.Errorf("written: %q\n%s", y.written(), result)
			}
			if tt.access == setting.FullAccessDeny {
				if !strings.Contains(result, `calls.full_access = \"deny\" refuses it`) {
					t.Error(result)
				}
				return
			}
			thread := servertest.ThreadOf(t, result)
			y.clear(t)
			y.model()
			c.CallTool(t, "codex-reply", `{"prompt":"again","threadId":"`+thread+`"}`)
			if got := len(y.written()); got > 0 != tt.writes {
				t.Errorf("written in a second turn: %q", y.written())
			}
			questions := len(c.Received("elicitation/create"))
			if tt.writes && questions != tt.questions {
				t.Errorf("asked again: %d", questions)
			}
			c.End()
			y.clear(t)
			y.bench.reopen(t)
			y.model()
			fresh := servertest.Connect(t, y.serve(tt.access), servertest.Say(servertest.Decline))
			result = fresh.CallTool(t, "codex-reply", `{"prompt":"and again","threadId":"`+thread+`"}`)
			if got := len(y.written()); got > 0 != tt.again {
				t.Errorf("written after a restart: %q\n%s", y.written(), result)
			}
		})
	}
}

// clear removes what was written.
func (y *yard) clear(t *testing.T) {
	for _, path := range y.written() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// TestHostileConversation begins conversations by the method of September 2025.
func TestHostileConversation(t *testing.T) {
	sandboxtest.Need(t)
	for _, who := range callers[:2] {
		t.Run(who.name, func(t *testing.T) {
			y := newYard(t, confinedUntrusted)
			c := servertest.Connect(t, y.serve(""), who.answer)
			var begun struct {
				ID string `json:"conversationId"`
			}
			if err := json.Unmarshal([]byte(c.Ask(t, "newConversation", y.in(`{"cwd":"OTHER","sandbox":"danger-full-access","approvalPolicy":"never"}`))), &begun); err != nil {
				t.Fatal(err)
			}
			c.Ask(t, "addConversationListener", `{"conversationId":"`+begun.ID+`"}`)
			c.Ask(t, "sendUserMessage", `{"conversationId":"`+begun.ID+`","items":[{"type":"text","data":{"text":"go"}}]}`)
			tick, limit := time.NewTicker(time.Millisecond), time.After(10*time.Second)
			defer tick.Stop()
			for len(c.Received("codex/event/error")) == 0 {
				select {
				case <-tick.C:
				case <-limit:
					t.Fatal("the turn does not end")
				}
			}
			if got := y.written(); len(got) > 0 {
				t.Errorf("written: %q", got)
			}
			if got := string(c.Received("codex/event/error")[0]); !strings.Contains(got, "calls.full_access") {
				t.Errorf("event %s", got)
			}
		})
	}
}

// TestHostileBackground begins a turn that nobody waits for: its question stays open until a codex-wait
// has it.
func TestHostileBackground(t *testing.T) {
	sandboxtest.Need(t)
	for _, tt := range []struct {
		name   string
		answer servertest.Answer
		writes bool
	}{
		{"declined", servertest.Say(servertest.Decline), false},
		{"approved", servertest.After(400*time.Millisecond, servertest.Accept), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			y := newYard(t, confinedUntrusted)
			y.limit = time.Minute
			c := servertest.Dial(t, y.serve(""), nil)
			begun := callModern(t, c, tt.answer, "codex", `{"prompt":"go","sandbox":"danger-full-access","approval-policy":"never","background":true}`)
			if got := y.written(); len(got) > 0 || len(y.bench.provider.Requests()) > 0 {
				t.Errorf("written before the answer: %q\n%s", got, begun)
			}
			result := callModern(t, c, tt.answer, "codex-wait", `{"threadIds":["`+servertest.ThreadOf(t, begun)+`"],"seconds":20}`)
			if got := y.written(); len(got) > 0 != tt.writes {
				t.Errorf("written: %q\n%s", got, result)
			}
			if !tt.writes && !strings.Contains(result, "nothing was started") {
				t.Error(result)
			}
		})
	}
}

// TestTrustedCaller checks that the word for all other keys of calls is none for more access.
func TestTrustedCaller(t *testing.T) {
	sandboxtest.Need(t)
	for _, arguments := range []string{
		`"config":{"sandbox_mode":"danger-full-access","approval_policy":"never"}`,
		`"config":{"profile":"wide"}`,
		`"config":{"profiles":{"mine":{"sandbox_mode":"danger-full-access","approval_policy":"never"}},"profile":"mine"}`,
		`"config":{"model_providers.test.base_url":"http://127.0.0.1:1/v1"}`,
	} {
		t.Run(arguments, func(t *testing.T) {
			y := newYard(t, strings.TrimPrefix(confinedUntrusted+wideProfile, "\n"))
			s := codexserver.New(y.bench.engine, &codexserver.Options{Folder: y.start, Calls: codexserver.CallOptions{TrustedCalls: true}})
			result := servertest.Connect(t, s, nil).CallTool(t, "codex", `{"prompt":"go",`+arguments+`}`)
			if got := y.written(); len(got) > 0 || !strings.Contains(result, "calls.full_access") {
				t.Errorf("written: %q\n%s", got, result)
			}
		})
	}
}
