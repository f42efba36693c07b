package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// nobody is the id of a conversation that does not exist.
const nobody = "00000000-0000-7000-8000-000000000000"

// has reports whether an engine has an optional interface.
func has[I any](e engine.Engine, _ engine.Conversation) bool {
	_, ok := e.(I)
	return ok
}

func testDescribed(t *testing.T, s *Subject) {
	one, two := engine.TraitsOf(s.Engine), engine.TraitsOf(s.Engine)
	if one.Name != two.Name || one.Streams != two.Streams || one.Announces != two.Announces {
		t.Errorf("the traits changed from %+v to %+v", one, two)
	}
	if one.CanContinue != nil && !has[engine.Resumer](s.Engine, nil) {
		t.Error("it continues turns and is no engine.Resumer")
	}
	if one.Reach == nil {
		return
	}
	for _, folder := range one.Reach() {
		if !filepath.IsAbs(folder) {
			t.Errorf("the folder %q within reach is not absolute", folder)
		}
	}
}

func testResumed(t *testing.T, s *Subject) {
	r := s.Engine.(engine.Resumer)
	if saved, err := r.Find(t.Context(), nobody); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a conversation that does not exist: %+v, %v", saved, err)
	}
	gone := engine.Saved{ID: nobody, File: filepath.Join(folder(t), "rollout-"+nobody+".jsonl")}
	if _, err := r.Resume(t.Context(), gone, s.Config, &host{}); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a file that does not exist: %v", err)
	}
	const word = "hippopotamus"
	s.Script(Step{Text: "yes"})
	old := start(t, s, always(elicit.Denied))
	old.completes(t, "remember "+word, "yes")
	saved, err := r.Find(t.Context(), old.ID())
	if err != nil || !strings.EqualFold(saved.ID, old.ID()) || !filepath.IsAbs(saved.File) {
		t.Fatalf("found %+v, %v", saved, err)
	}
	cfg := s.Config
	cfg.Cwd = old.cwd
	h := &host{decide: always(elicit.Denied)}
	c, err := r.Resume(t.Context(), saved, cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	again := &conversation{c, h, old.cwd}
	events := again.take()
	i := index[protocol.SessionConfigured](events)
	if i < 0 || count[protocol.SessionConfigured](events) != 1 || c.ID() != old.ID() {
		t.Fatalf("%s of conversation %s came for %s", types(events), c.ID(), old.ID())
	}
	past := events[i].(protocol.SessionConfigured).InitialMessages
	if !slices.ContainsFunc(past, func(m json.RawMessage) bool { return strings.Contains(string(m), word) }) {
		t.Errorf("the messages of the past are %s", past)
	}
	was := ""
	s.Script(Step{Text: "of " + word, Asked: func(sent string) { was = sent }})
	again.completes(t, "what was it?", "of "+word)
	if !strings.Contains(was, word) {
		t.Error("the model was not sent what was said before")
	}
}

func testListed(t *testing.T, s *Subject) {
	l := s.Engine.(engine.Library)
	s.Script(Step{Text: "yes"})
	c := start(t, s, always(elicit.Denied))
	c.completes(t, "hello", "yes")
	page, err := l.List(t.Context(), protocol.ListConversationsParams{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(page.Items,
		func(i protocol.ConversationSummary) bool { return strings.EqualFold(i.ConversationID, c.ID()) }) {
		t.Errorf("the newest conversation %s is not in %+v", c.ID(), page.Items)
	}
	if page, err := l.List(t.Context(), protocol.ListConversationsParams{Cursor: "no cursor"}); !errors.Is(err,
		engine.ErrCursor) {
		t.Errorf("a cursor of no page: %+v, %v", page, err)
	}
}

func testAccounts(t *testing.T, s *Subject) {
	a := s.Engine.(engine.Accounts)
	for range 2 {
		status, err := a.AuthStatus(t.Context(), protocol.GetAuthStatusParams{})
		if err != nil || status.AuthToken != "" {
			t.Errorf("the status, with a token that was not asked for: %t, %v", err == nil, err)
		}
		if err := a.Logout(t.Context()); err != nil {
			t.Errorf("Logout: %v", err)
		}
	}
}

func testSearched(t *testing.T, s *Subject) {
	f, root := s.Engine.(engine.Searcher), folder(t)
	if err := os.WriteFile(filepath.Join(root, "hippopotamus.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := f.SearchFiles(t.Context(), protocol.FuzzyFileSearchParams{Query: "hippo", Roots: []string{root}})
	if err != nil || len(found.Files) != 1 || found.Files[0].Path != "hippopotamus.txt" || found.Files[0].Root != root {
		t.Errorf("found %+v, %v", found, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if found, err := f.SearchFiles(ended,
		protocol.FuzzyFileSearchParams{Query: "hippo", Roots: []string{root}}); err != nil || found == nil {
		t.Errorf("a search that was ended: %+v, %v", found, err)
	}
}

func testModels(t *testing.T, s *Subject) {
	switch list, err := s.Engine.(engine.ModelLister).Models(t.Context()); {
	case err == nil && len(list.Models) == 0:
		t.Error("an empty list is not an error")
	case err != nil && list != nil:
		t.Errorf("a list and an error: %+v, %v", list, err)
	}
}

// confines reports whether an engine has the modes of a sandbox.
func confines(e engine.Engine, _ engine.Conversation) bool { return engine.TraitsOf(e).Confines }

func testReadOnly(t *testing.T, s *Subject) {
	reads := *s
	reads.Config.ReadOnly, reads.Config.Sandbox, reads.Config.ApprovalPolicy = true, protocol.SandboxReadOnly,
		protocol.ApprovalNever
	s.Script(Step{Command: touch("made")}, Step{Text: "all is well"})
	c := start(t, &reads, always(elicit.Approved))
	events := c.completes(t, "look", "all is well")
	if index[protocol.ExecApprovalRequest](events) >= 0 || exists(c, "made") {
		t.Errorf("it asks nothing and changes nothing; the file is there: %t; %s", exists(c, "made"), types(events))
	}
}

func checks(_ engine.Engine, c engine.Conversation) bool {
	_, is := c.(engine.Checker)
	return is
}

func testChecked(t *testing.T, s *Subject) {
	asking := *s
	asking.Config.ApprovalPolicy, asking.Config.Sandbox = protocol.ApprovalUntrusted, protocol.SandboxWorkspaceWrite
	type ended struct {
		why                      string
		err                      error
		*protocol.ExecCommandEnd // nil for a check that did not run
		events                   []protocol.EventMsg
	}
	check := func(ctx context.Context, c *conversation, line string, limit time.Duration) (e ended) {
		c.take()
		e.why, e.err = c.Conversation.(engine.Checker).Check(ctx, engine.Line{ID: "check", Text: line, Limit: limit})
		e.events = c.take()
		if i := index[protocol.ExecCommandEnd](e.events); i >= 0 {
			e.ExecCommandEnd = new(e.events[i].(protocol.ExecCommandEnd))
		}
		return e
	}
	c := start(t, &asking, always(elicit.Approved))
	for _, tt := range []struct {
		line   string
		code   int
		output string
	}{
		{"echo fine >made", 0, ""}, {"cat made; echo wrong >&2; exit 3", 3, "wrong"},
		{"no-such-program-at-all", 127, "not found"},
		{`i=0; while [ $i -lt 40000 ]; do echo "line $i"; i=$((i+1)); done; exit 1`, 1, "line 39999"},
	} {
		e := check(t.Context(), c, tt.line, limit)
		asked, began, end := index[protocol.ExecApprovalRequest](e.events), index[protocol.ExecCommandBegin](e.events),
			index[protocol.ExecCommandEnd](e.events)
		if asked < 0 || began < asked || end < began || e.why != "" || e.err != nil {
			t.Errorf("%s: %q, %v, %s", tt.line, e.why, e.err, types(e.events))
		} else if e.CallID != "check" || e.ExitCode != tt.code || !strings.Contains(e.FormattedOutput, tt.output) ||
			len(e.FormattedOutput) > 20_000 {
			t.Errorf("%s: %+v", tt.line, e.ExecCommandEnd)
		}
	}
	if !exists(c, "made") {
		t.Error("a check ran elsewhere")
	}
	if e := check(t.Context(), c, "sleep 600", 300*time.Millisecond); e.ExecCommandEnd == nil || e.ExitCode != 124 ||
		e.why != "" || !strings.Contains(e.FormattedOutput, "timed out") {
		t.Errorf("a check without end: %+v", e)
	}
	denied := start(t, &asking, always(elicit.Denied))
	if e := check(t.Context(), denied, "echo x >made", limit); e.why == "" || e.err != nil || exists(denied, "made") ||
		index[protocol.ExecCommandBegin](e.events) >= 0 {
		t.Errorf("a check that was denied: %+v", e)
	}
	if e := check(t.Context(), denied, "pwd", limit); e.why != "" || e.ExecCommandEnd == nil || e.ExitCode != 0 ||
		index[protocol.ExecApprovalRequest](e.events) >= 0 {
		t.Errorf("a check that is known to be safe: %+v", e)
	}
	abort := start(t, &asking, always(elicit.Abort))
	if e := check(t.Context(), abort, "echo x >made", limit); e.err == nil || exists(abort, "made") {
		t.Errorf("a check whose question was answered with abort: %+v", e)
	}
	ctx, interrupt := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Second, func() { interrupt(errStop) })
	began := time.Now()
	if check(ctx, c, "sleep 600", limit); time.Since(began) > limit/2 {
		t.Errorf("an interrupted check ended after %v", time.Since(began))
	}
	usable(t, &asking, c)
}

func forms(_ engine.Engine, c engine.Conversation) bool {
	_, is := c.(engine.Former)
	return is
}

// former is a conversation whose turns are for the form of an answer.
type former struct{ engine.Conversation }

func (f former) Turn(ctx context.Context, in protocol.TurnInput) error {
	return f.Conversation.(engine.Former).Form(ctx, in)
}

func testFormed(t *testing.T, s *Subject) {
	c := start(t, s, always(elicit.Approved))
	form := &conversation{former{c.Conversation}, c.host, c.cwd}
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],` +
		`"additionalProperties":false}`
	in := protocol.TurnInput{Items: protocol.TextInput("go"), OutputSchema: json.RawMessage(schema)}
	s.Script(Step{Command: touch("made")}, Step{Text: "one"})
	events, err := c.run(t, t.Context(), "go", in)
	if completed(t, events, err, "one"); !exists(c, "made") {
		t.Error("under a schema the work was not done")
	}
	in.Items, in.Again = protocol.TextInput("again"), true
	was := ""
	s.Script(Step{Text: `{"n":1}`, Asked: func(sent string) { was = sent }})
	events, err = form.run(t, t.Context(), "again", in)
	if completed(t, events, err, `{"n":1}`); !strings.Contains(was, "again") {
		t.Error("the model was not sent what is wrong with its answer")
	}
	s.Script(Step{Command: touch("evil")}, Step{Text: "done"})
	events, _ = form.run(t, t.Context(), "again", in) // it may go on after that, or fail
	framed(t, events)
	if exists(c, "evil") || index[protocol.ExecApprovalRequest](events) >= 0 {
		t.Errorf("a call in place of the form ran, or was asked about: %s", types(events))
	}
	usable(t, s, c)
}
