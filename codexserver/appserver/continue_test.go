package appserver_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// writeRollout writes the rollout of a thread whose turn was cut.
func writeRollout(t *testing.T, lines ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "rollout-"+threadID+".jsonl")
	writeFile(t, path, strings.Join(lines, "\n")+"\n")
	return path
}

func turnContext(sandbox, more, policy string) string {
	return fmt.Sprintf(`{"type":"turn_context","payload":{"cwd":"/work","approval_policy":%q,"model":"of-the-turn","approvals_reviewer":"user","sandbox_policy":{"type":%q%s}}}`, policy, sandbox, more)
}

// TestContinueRefused resumes threads whose turn cannot continue, because its sandbox is not known. A
// writer from before, which has not ended, is awaited.
func TestContinueRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		had  string // a line of the rollout
		fine bool
	}{
		"known":                     {turnContext("read-only", "", "untrusted"), true},
		"no policies":               {`{"type":"event_msg","payload":{"type":"task_started"}}`, false},
		"a sandbox in another form": {`{"type":"turn_context","payload":{"cwd":"/work","sandbox_policy":"read-only"}}`, false},
		"an unknown sandbox":        {turnContext("external-sandbox", "", "untrusted"), false},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeRollout(t, turnContext("danger-full-access", "", "never"), tt.had)
			if name == "no policies" {
				path = writeRollout(t, tt.had)
			}
			bubble(t, func(t *testing.T, f *fake) {
				f.rollout = path
				sent := ""
				f.on["thread/resume"] = func(_ *run, req *jsonrpc.Request) (any, error) {
					if sent == "" {
						sent = " "
						return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "thread has an active writer")
					}
					sent = string(req.Params)
					return nil, nil
				}
				_, err := f.engine(appserver.Options{}).Resume(t.Context(), savedAt(path), protocol.Config{Cwd: t.TempDir(), Continues: true}, &recorder{})
				if refused, ok := errors.AsType[*engine.RefusedError](err); ok == tt.fine || err != nil && !ok {
					t.Errorf("%v, %v", refused, err)
				}
				if tt.fine && !strings.Contains(sent, `"model":"of-the-turn"`) {
					t.Errorf("sent %s", sent)
				}
			})
		})
	}
}

// TestContinue continues turns, by what Codex and the rollout say of them.
func TestContinue(t *testing.T) {
	const key = "key-of-the-turn"
	t.Setenv("MY_PROVIDERS_WORD", "four-words-nobody-knows")
	call := `{"type":"response_item","payload":{"type":"function_call","call_id":"c1","name":"exec_command","arguments":"{\"cmd\":\"make all\"}"}}`
	output := func(words string) string {
		return fmt.Sprintf(`{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":%q}}`, words)
	}
	const started = `{"type":"event_msg","payload":{"type":"task_started"}}`
	said := func(client string) string {
		return fmt.Sprintf(`{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"UserMessage","client_id":%q}}}`, client)
	}
	completed := func(answer string) string {
		return fmt.Sprintf(`{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":%q}}`, answer)
	}
	failed := func(words string) string {
		return fmt.Sprintf(`{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":null,"error":{"message":%q}}}`, words)
	}
	const aborted = `{"type":"event_msg","payload":{"type":"turn_aborted"}}`
	cut, other := started+"\n"+said(key), started+"\n"+said("another")
	real := must.Get(os.ReadFile(filepath.Join("..", "internal", "history", "testdata", "codex-aborted.jsonl")))(t)
	ofCodex := strings.Split(strings.ReplaceAll(strings.TrimSpace(string(real)), "2D2V6IJHDVIE4K6KTWEOD7PRAS", key), "\n") // two turns, of which the second one continues the first
	for _, tt := range []struct {
		name    string
		rollout []string
		want    string // the answer, or a part of the error
		begins  bool   // another turn
		notes   string
	}{
		{"cut", []string{other, completed("before"), cut}, "went on", true, ""},
		{"a call is open", []string{cut, call}, "went on", true, "make all"},
		{"a call was aborted at the end of the input", []string{cut, call, output("Wall time: 0.1 seconds\naborted by user"), aborted}, "went on", true, "make all"},
		{"a call has its result", []string{cut, call, output("Process exited with code 0")}, "went on", true, ""},
		{"a call of an earlier turn", []string{other, call, cut}, "went on", true, ""},
		{"a call of a turn that was continued", []string{cut, call, cut}, "went on", true, "make all"},
		{"it had ended", []string{cut, completed("the end")}, "the end", false, ""},
		{"it had ended, and another was cut before its message", []string{cut, completed("the end"), started}, "the end", false, ""},
		{"it was continued to its end", []string{cut, call, cut, completed("the end")}, "the end", false, "make all"},
		{"it was continued and failed", []string{cut, call, cut, failed("no quota")}, "no quota", false, "make all"},
		{"its form was cut", []string{cut, completed("the work"), started, said(key + "-form")}, "the work", false, ""},
		{"its form was cut and begun again", []string{cut, completed("the work"), started, said(key + "-form"), aborted, started, said(key + "-form")}, "the work", false, ""},
		{"its form had ended", []string{cut, completed("the work"), started, said(key + "-form"), completed(`{"n":1}`)}, `{"n":1}`, false, ""},
		{"its form had no answer", []string{cut, completed("the work"), started, said(key + "-form"), failed("no quota")}, "the work", false, ""},
		{"another followed the form", []string{cut, completed("the work"), started, said(key + "-form"), other}, "was continued before", false, ""},
		{"it had failed", []string{cut, failed("no quota for four-words-nobody-knows")}, "no quota for [redacted]", false, ""},
		{"it never began", []string{other, completed("before")}, "nothing of it ran", false, ""},
		{"another followed", []string{cut, other}, "was continued before", false, ""},
		{"one without a message followed to its end", []string{cut, started, completed("compacted")}, "was continued before", false, ""},
		{"a message came while it ran", []string{cut, said("another"), call}, "went on", true, "make all"},
		{"it was continued, and cut before its message", []string{cut, call, started}, "went on", true, "make all"},
		{"then it was continued, and cut", []string{cut, call, started, cut}, "went on", true, "make all"},
		{"Codex 0.171 had the time to abort it", ofCodex[:10], "went on", true, "echo n28-1"},
		{"Codex 0.171 continued it to its end", ofCodex, "done n28", false, "echo n28-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := writeRollout(t, append([]string{turnContext("read-only", "", "on-request")}, tt.rollout...)...)
			bubble(t, func(t *testing.T, f *fake) {
				f.rollout = path
				f.config = map[string]any{"model": "m", "model_providers": map[string]any{"p": map[string]any{"env_key": "MY_PROVIDERS_WORD"}}}
				params := f.keep("turn/start")
				f.turn = func(r *run) { r.say("went on"); r.complete("completed") }
				h := &recorder{}
				conv, err := f.engine(appserver.Options{}).Resume(t.Context(), savedAt(path), protocol.Config{Cwd: t.TempDir(), Continues: true}, h)
				must.OK(t, err)
				var notes []string
				err = conv.Turn(t.Context(), protocol.TurnInput{Key: key, OutputSchema: []byte(`{"type":"object"}`), Continue: func(words string) { notes = append(notes, words) }})
				if got := fmt.Sprint(h.answer(), err); !strings.Contains(got, tt.want) {
					t.Errorf("%s, want %s", got, tt.want)
				}
				if said := strings.Join(notes, "\n"); (said != "") != (tt.notes != "") || !strings.Contains(said, tt.notes) {
					t.Errorf("a person was told %q", said)
				}
				started := strings.Join(*params, "")
				if (started != "") != tt.begins {
					t.Errorf("turn/start %s", started)
				}
				for _, part := range []string{key, "follows this schema", "Find out what such a call has done"} {
					if tt.begins && !strings.Contains(started, part) {
						t.Errorf("turn/start %s, want %s", started, part)
					}
				}
			})
		})
	}
}

// TestContinueNotBegun begins a turn whose process ended before it had begun it, such as in its set-up.
func TestContinueNotBegun(t *testing.T) {
	path := writeRollout(t, turnContext("read-only", "", "on-request"))
	bubble(t, func(t *testing.T, f *fake) {
		f.rollout = path
		params := f.keep("turn/start")
		f.turn = func(r *run) { r.say("begun"); r.complete("completed") }
		h := &recorder{}
		conv := must.Get(f.engine(appserver.Options{}).Resume(t.Context(), savedAt(path), protocol.Config{Cwd: t.TempDir(), Continues: true}, h))(t)
		must.OK(t, conv.Turn(t.Context(), protocol.TurnInput{Key: "k", Items: protocol.TextInput("the task"), Continue: func(string) {}}))
		if started := strings.Join(*params, ""); !strings.Contains(started, "the task") || strings.Contains(started, "interrupted") || h.answer() != "begun" {
			t.Errorf("turn/start %s", started)
		}
	})
}

// TestCanContinue says that turns of a Codex that does not record what began a turn are not continued.
func TestCanContinue(t *testing.T) {
	for version, want := range map[string]string{newestVersion: "", "0.169.0": "", "0.168.0": "codex 0.168.0 does not record which turn a message began"} {
		bubble(t, func(t *testing.T, f *fake) {
			f.version = version
			if err := f.engine(appserver.Options{}).Traits().CanContinue(t.Context()); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", version, err)
			}
		})
	}
	e := must.Get(appserver.New(&appserver.Options{Path: "/nonexistent"}))(t)
	defer e.Close()
	if err := e.Traits().CanContinue(t.Context()); err == nil {
		t.Error("a missing Codex can continue")
	}
}

// TestStore plays turns in which Codex writes its rollout. It is in the store when a turn has ended; when the store
// fails the client is told. What became of a turn that Codex does not have is not known.
func TestStore(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		disk, name := t.TempDir(), "sessions/2026/11/22/rollout-2026-11-22T10-00-00-"+threadID+".jsonl"
		m, _ := workertest.Mirror(t, f.home, disk, 1)
		path := filepath.Join(f.home, filepath.FromSlash(name))
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		written := ""
		f.rollout = path
		f.turn = func(r *run) {
			written += turnContext("read-only", "", "untrusted") + "\n"
			writeFile(t, path, written)
			r.complete("completed")
		}
		h := &recorder{}
		conv := must.Get(f.engine(appserver.Options{CodexHome: f.home, Store: m}).Start(t.Context(), protocol.Config{Cwd: "/work"}, h))(t)
		for range 2 {
			must.OK(t, conv.Turn(t.Context(), text("go")))
			if got, err := os.ReadFile(filepath.Join(disk, name)); err != nil || string(got) != written || h.count("background_event") > 0 {
				t.Errorf("%v; the store has\n%s\nCodex wrote\n%s", err, got, written)
			}
		}
		if err := conv.Turn(t.Context(), protocol.TurnInput{Key: "another", Continue: func(string) {}}); err == nil || !strings.Contains(err.Error(), "is not known") {
			t.Errorf("a turn that Codex does not have: %v", err)
		}
		must.Get(workertest.OpenDir(disk, 2))(t)
		if err := conv.Turn(t.Context(), text("go")); err != nil || h.count("background_event") != 1 {
			t.Errorf("%v; events %v", err, h.types())
		}
	})
}
