package servertest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// FormEngine is an engine whose answers have a form. Its model obeys a schema from the first token on, as some providers have
// it: with one in its request it calls nothing.
type FormEngine struct {
	// Open opens the engine on a home of Codex, and a server with it in a folder.
	Open func(t *testing.T, home, folder string, calls setting.Calls) Server
	// Model makes the answers of the model.
	Model Model
	// Configuration is more of config.toml's first keys.
	Configuration string
	// Counts says that the engine counts the tokens of a response before it ends.
	Counts bool
}

// FormSchema is the schema of the answers, and Formed an answer that fits.
const (
	FormSchema = `{"type":"object","properties":{"zebra":{"type":"boolean"}},"required":["zebra"],` +
		`"additionalProperties":false}`
	Formed = `{"zebra":true}`
)

// made is what the model says when its work is done.
const made = "I have made the file."

// Holds reports whether a request holds the model to a schema.
func Holds(request []byte) bool { return bytes.Contains(request, []byte(`"json_schema"`)) }

// formCase is a row of the table of forms.
type formCase struct {
	name      string
	arguments string // more members of the call
	work      []Step // what the model does for its work, by default a command and then words
	form      Step   // what it does for the form, by default what fits
	// called when the model is asked for the form, which it does not write before during returns
	during   func(*formRun)
	want     string   // status and output
	says     []string // parts of the result
	requests int
	then     func(*formRun)
	counts   bool // see [FormEngine]
}

type formRun struct {
	*testing.T
	client *Client
	cwd    string
	thread func() string
	asked  record[string]
	over   chan struct{} // closed when the call has returned
}

func (r *formRun) exists(name string) bool {
	_, err := os.Stat(filepath.Join(r.cwd, name))
	return err == nil
}

func (r *formRun) use(tool, members string) string {
	return r.client.Use(r.Context(), tool, fmt.Sprintf(`{"threadId":%q%s}`, r.thread(), members))
}

func formCases() []formCase {
	works := Step{ID: "c1", Line: "echo x >made"}
	kept := []string{"The work is done, and its answer is not in the form that was asked for", made}
	evil := func(r *formRun) {
		if r.exists("evil") {
			r.Error("a call of the form ran")
		}
	}
	return []formCase{
		{name: "the work first", want: "completed " + Formed, requests: 3},
		{name: "it fits already", work: []Step{works, {Say: Formed}}, want: "completed " + Formed, requests: 2},
		{name: "a check between", arguments: `,"check":"cat made >checked"`, want: "completed " + Formed, requests: 3,
			during: func(r *formRun) {
				if !r.exists("checked") {
					r.Error("the form came before the check")
				}
			}},
		{name: "a check that fails once", work: []Step{{Say: "nothing to do"}, works, {Say: made}},
			arguments: `,"check":"cat made"`, want: "completed " + Formed, requests: 4},
		{name: "a check that fails always", arguments: `,"check":"exit 3"`,
			work: []Step{works, {Say: made}, {Say: made}, {Say: made}}, want: "incomplete " + Formed, requests: 5},
		{name: "no words", work: []Step{works, {Say: " "}}, want: "completed " + Formed, requests: 3},
		{name: "interrupted", during: func(r *formRun) { r.use("codex-interrupt", "") }, want: "aborted ", says: kept,
			requests: 3, then: func(r *formRun) {
				if got := r.use("codex-reply", `,"prompt":"and now?"`); !strings.Contains(got, `"status":"completed"`) {
					r.Errorf("the next turn: %s", got)
				}
			}},
		{name: "the time ends there", arguments: `,"budget":{"minutes":0.2}`, during: func(r *formRun) { <-r.over },
			want: "incomplete ", says: append(kept, `"stopped":"budget of 0.2 minutes reached"`), requests: 3},
		{name: "the tokens end there", counts: true, arguments: `,"budget":{"tokens":30}`, want: "incomplete ",
			says: append(kept, `"stopped":"budget of 30 tokens reached"`), requests: 2},
		{name: "the provider fails", form: Step{Fail: true}, want: "incomplete ", says: append(kept, "no such luck"),
			requests: 3},
		{name: "it works on", form: Step{ID: "c2", Line: "echo x >evil"}, want: "incomplete ",
			says: append(kept, "although it was asked for the form of its answer alone"), requests: 3, then: evil},
		{name: "never fits", form: Step{Say: "I will not"}, want: "incomplete ",
			says: []string{"The answer does not fit output-schema"}, requests: 3},
		{name: "steered", work: []Step{works, {Say: made}, {ID: "c3", Line: "echo x >more"}, {Say: Formed}},
			during: func(r *formRun) {
				r.use("codex-reply", `,"prompt":"steered-into-it","while-running":"steer"`)
			}, want: "completed " + Formed, requests: 5, then: func(r *formRun) {
				sent, said := r.asked.list(), "steered-into-it"
				if !r.exists("more") || strings.Contains(sent[2], said) || !strings.Contains(sent[3], said) {
					r.Errorf("the model was sent %.3000q", sent)
				}
			}},
	}
}

// TestForms plays the table of forms, each row in one of the eras or in the background, those for which plays returns true.
func (e *FormEngine) TestForms(t *testing.T, plays func(n int) bool) {
	boxtest.Need(t)
	home := boxtest.Outside(t)
	t.Setenv("HOME", home)
	must.OK(t, os.Mkdir(filepath.Join(home, "work"), 0o700))
	for n, tt := range formCases() {
		if !plays(n) || tt.counts && !e.Counts {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e.play(t, home, &tt, n)
		})
	}
}

func (e *FormEngine) play(t *testing.T, home string, tt *formCase, n int) {
	r := &formRun{T: t, over: make(chan struct{}), cwd: must.Get(os.MkdirTemp(filepath.Join(home, "work"), ""))(t)}
	codex, work, asked, ready := t.TempDir(), 0, make(chan struct{}), make(chan struct{})
	steps := tt.work
	if steps == nil {
		steps = []Step{{ID: "c1", Line: "echo x >made"}, {Say: made}}
	}
	url := e.Model(t, func(request []byte) Step {
		r.asked.add(string(request))
		if Holds(request) {
			if tt.during != nil {
				close(asked)
				<-ready
			}
			if tt.form == (Step{}) {
				return Step{Say: Formed}
			}
			return tt.form
		}
		if work++; work > len(steps) {
			return Step{Say: "the end"}
		}
		return steps[work-1]
	})
	configuration := "approval_policy = \"never\"\nsandbox_mode = \"workspace-write\"\n" + e.Configuration
	writeFile(t, filepath.Join(codex, "config.toml"), CodexConfig(url, configuration), 0o600)
	era := []Era{Handshake, Rounds, Polls}[n%3]
	r.client = Join(t, e.Open(t, codex, r.cwd, setting.Calls{}), Host{Era: era})
	r.thread = func() (id string) {
		var list struct {
			StructuredContent struct{ Conversations []struct{ ThreadID string } }
		}
		must.OK(t, json.Unmarshal([]byte(r.client.Use(t.Context(), "codex-list", `{"cwd":"*"}`)), &list))
		return list.StructuredContent.Conversations[0].ThreadID
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(ready)
		select {
		case <-asked:
			tt.during(r)
		case <-ctx.Done():
		}
	}()
	defer func() { stop(); <-done }()
	got := r.client.Use(ctx, "codex", fmt.Sprintf(`{"prompt":"go","cwd":%q,"output-schema":%s%s}`, r.cwd, FormSchema,
		tt.arguments))
	close(r.over)
	if !r.exists("made") {
		t.Errorf("the work was not done")
	}
	for _, part := range tt.says {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in %.3000s", part, got)
		}
	}
	type called struct {
		IsError           bool
		StructuredContent protocol.TurnResult
	}
	var result struct {
		called
		Result *called // of a task
	}
	must.OK(t, json.Unmarshal([]byte(got), &result))
	did := cmp.Or(result.Result, &result.called)
	must.Equal(t, "the result of "+got, tt.want,
		fmt.Sprint(did.StructuredContent.Status, " ", string(did.StructuredContent.Output)))
	if did.IsError != strings.HasPrefix(tt.want, "aborted") {
		t.Errorf("isError %t", did.IsError)
	}
	sent := r.asked.list()
	must.Equal(t, "requests", tt.requests, len(sent))
	for i, request := range sent {
		if !strings.Contains(request, "zebra") {
			t.Errorf("request %d does not tell the model of the schema", i)
		}
	}
	if era == Handshake {
		r.once(ctx)
	}
	if tt.then != nil {
		tt.then(r)
	}
}

// once checks that the client was told of one begin and one end. The last events may come after the result.
func (r *formRun) once(ctx context.Context) {
	r.Helper()
	for ctx.Err() == nil {
		all := strings.Join(r.client.Events(), " ")
		begins, ends := strings.Count(all, "task_started"),
			strings.Count(all, "task_complete")+strings.Count(all, "turn_aborted")
		if ends > 0 {
			must.Equal(r, "begins and ends of "+all, "1 1", fmt.Sprint(begins, ends))
			return
		}
		_ = Wait(ctx, firstPoll)
	}
	r.Error("no end of the turn was reported")
}
