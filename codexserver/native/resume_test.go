package native_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// configured returns the first event of a conversation.
func configured(t testing.TB, h *host) protocol.SessionConfigured {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.events {
		if c, ok := m.(protocol.SessionConfigured); ok {
			return c
		}
	}
	t.Fatal("no session_configured")
	panic("unreachable")
}

func TestResume(t *testing.T) {
	for _, wire := range []string{"chat", "responses"} {
		t.Run(wire, func(t *testing.T) {
			b := setup(t, "---\nwire_api = \""+wire+"\"", native.Limits{},
				providertest.Turn{Text: []string{"on it"}, ToolCalls: []providertest.ToolCall{providertest.Shell("c1", "echo", "one")}},
				providertest.Say("first answer"), providertest.Say("second answer"))
			h := &host{}
			c := b.start(t, h, protocol.Config{})
			turn(t, c, say("first question"))
			first := configured(t, h)
			closed(t, c)
			b.reopen(t)

			path, err := fileOf(t, b.engine, c.ID())
			if err != nil || path != first.RolloutPath {
				t.Fatalf("Find: %q, %v, want %q", path, err, first.RolloutPath)
			}
			h = &host{}
			c, err = b.engine.Resume(t.Context(), engine.Saved{File: path}, protocol.Config{}, h)
			if err != nil {
				t.Fatal(err)
			}
			again := configured(t, h)
			if again.SessionID != first.SessionID || again.RolloutPath != path || len(again.InitialMessages) == 0 {
				t.Errorf("resumed as %+v", again)
			}
			turn(t, c, say("second question"))
			closed(t, c)
			inOrder(t, lastRequest(b), "first question", "on it", "c1", "first answer", "second question")

			validRequests(t, b.provider)
		})
	}
}

func lastRequest(b *bench) string {
	all := b.provider.Requests()
	return string(all[len(all)-1].Body)
}

// inOrder fails the test unless text has all parts, one after another.
func inOrder(t testing.TB, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, p := range parts {
		_, after, found := strings.Cut(rest, p)
		if !found {
			t.Fatalf("want %q, after the parts before it, in %s", p, text)
		}
		rest = after
	}
}

func TestResumeOfAMissingRollout(t *testing.T) {
	b := setup(t, "", native.Limits{})
	_, err := b.engine.Resume(t.Context(), engine.Saved{File: filepath.Join(b.home, "none.jsonl")}, protocol.Config{}, &host{})
	if !isNotFound(err) {
		t.Errorf("Resume: %v, want not found", err)
	}
	for _, id := range []string{"01995a2b-0000-7000-8000-000000000000", "*", "../x"} {
		if _, err := b.engine.Find(t.Context(), id); !isNotFound(err) {
			t.Errorf("Find(%q): %v, want not found", id, err)
		}
	}
}

// TestResumeAfterKill kills the process while a command runs: the conversation can continue,
// and the model learns that the command did not finish.
func TestResumeAfterKill(t *testing.T) {
	b := setup(t, "", native.Limits{},
		providertest.Call(providertest.Shell("c1", "sh", "-c", "echo $$; exec sleep 600"), providertest.Shell("c2", "echo", "never")),
		providertest.Say("recovered"))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PLAY=engine", "PLAY_HOME="+b.home, "PLAY_CWD="+b.cwd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var read []string // the file, and the command's process id
	for len(read) < 2 && lines.Scan() {
		read = append(read, lines.Text())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if len(read) < 2 {
		t.Fatalf("the engine wrote %q", read)
	}
	path := read[0]
	endProcess(t, read[1])

	// Its last line is torn.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"timestamp":"2025-09-30T00:00:00.000Z","type":"response_item","payl`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	h := &host{}
	c := b.resume(t, path, protocol.Config{}, h)
	defer c.Close()
	turn(t, c, say("go on"))
	inOrder(t, lastRequest(b), "the task", "c1", "c2", "aborted", "aborted", "go on")
	validRequests(t, b.provider)
	if events := h.take(); !slices.Contains(events, "task_complete recovered") {
		t.Errorf("events %q", events)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), `"payl`+"\n"); n != 0 {
		t.Error("the torn line is still there")
	}
}

// endProcess ends the command that the killed engine left running.
func endProcess(t *testing.T, id string) {
	t.Helper()
	pid, err := strconv.Atoi(id)
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) { // its launcher may have been faster
		t.Error(err)
	}
}

func isNotFound(err error) bool { return errors.Is(err, engine.ErrNotFound) }

var _ engine.Resumer = (*native.Engine)(nil)

// keepAll lets a resumed conversation keep what its last turn had.
func keepAll(protocol.Access) bool { return true }

// TestResumeKeepsThePolicies checks that a conversation continues with the policies of its last
// turn, as without a restart, unless the call chooses others.
func TestResumeKeepsThePolicies(t *testing.T) {
	for _, tt := range []struct {
		name      string
		call      protocol.Config
		questions int
	}{
		{"its own", protocol.Config{Keep: keepAll}, 0},
		{"its own folder and model aside", protocol.Config{Keep: keepAll, Overrides: map[string]json.RawMessage{"model": json.RawMessage(`"x"`)}}, 0},
		{"another by argument", protocol.Config{ApprovalPolicy: protocol.ApprovalUntrusted}, 1},
		{"another by override", protocol.Config{Overrides: map[string]json.RawMessage{"approval_policy": json.RawMessage(`"untrusted"`)}}, 1},
		{"none that allows more", protocol.Config{}, 1},
		{"a profile", protocol.Config{Overrides: map[string]json.RawMessage{"profile": json.RawMessage(`"other"`)}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, "---\nwire_api = \"chat\"\n[profiles.other]\nmodel = \"y\"", native.Limits{},
				providertest.Say("hello"), providertest.Call(providertest.Shell("c1", "touch", "made")), providertest.Say("done"))
			c := b.start(t, &host{}, protocol.Config{ApprovalPolicy: protocol.ApprovalNever})
			turn(t, c, say("first"))
			closed(t, c)
			b.reopen(t)
			path, err := fileOf(t, b.engine, c.ID())
			if err != nil {
				t.Fatal(err)
			}
			questions := 0
			h := &host{exec: func(context.Context, protocol.ExecApprovalRequest) elicit.Decision {
				questions++
				return elicit.Denied
			}}
			again := b.resume(t, path, tt.call, h)
			defer again.Close()
			turn(t, again, say("second"))
			if questions != tt.questions {
				t.Errorf("asked %d times, want %d", questions, tt.questions)
			}
		})
	}
}

// TestResumeWithinTheConfiguration resumes conversations whose callers had more choices than
// the caller that resumes them.
func TestResumeWithinTheConfiguration(t *testing.T) {
	for _, tt := range []struct {
		configured, last, want protocol.SandboxMode
		bounded                bool
	}{
		{protocol.SandboxReadOnly, protocol.SandboxDangerFullAccess, protocol.SandboxReadOnly, true},
		{protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess, protocol.SandboxWorkspaceWrite, true},
		{protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite, protocol.SandboxReadOnly, true},
		{protocol.SandboxDangerFullAccess, protocol.SandboxReadOnly, protocol.SandboxReadOnly, true},
		{protocol.SandboxReadOnly, protocol.SandboxDangerFullAccess, protocol.SandboxDangerFullAccess, false},
	} {
		t.Run(fmt.Sprintf("%s, last %s, bounded %t", tt.configured, tt.last, tt.bounded), func(t *testing.T) {
			b := setup(t, "---\nwire_api = \"chat\"", native.Limits{}, providertest.Say("hello"), providertest.Say("again"))
			c := b.start(t, &host{}, protocol.Config{Sandbox: tt.last})
			turn(t, c, say("first"))
			closed(t, c)
			file := filepath.Join(b.home, "config.toml")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text = bytes.Replace(text, []byte("danger-full-access"), []byte(tt.configured), 1)
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			b.reopen(t)
			path, err := fileOf(t, b.engine, c.ID())
			if err != nil {
				t.Fatal(err)
			}
			cfg := protocol.Config{}
			if !tt.bounded {
				cfg.Keep = keepAll
			}
			again := b.resume(t, path, cfg, &host{})
			defer again.Close()
			turn(t, again, say("second"))
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			contexts := regexp.MustCompile(`"sandbox_policy":\{"(?:mode|type)":"([a-z-]+)"`).FindAllSubmatch(raw, -1)
			if got := string(contexts[len(contexts)-1][1]); got != string(tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestReadOnlyStaysReadOnly resumes a conversation to read only, whose rollout allows more.
func TestReadOnlyStaysReadOnly(t *testing.T) {
	b := setup(t, "---\nwire_api = \"responses\"", native.Limits{}, providertest.Say("hello"),
		providertest.Call(providertest.Shell("c1", "touch", "made")), providertest.Say("done"))
	c := b.start(t, &host{}, protocol.Config{ApprovalPolicy: protocol.ApprovalNever, WebSearch: new(true)})
	turn(t, c, say("first"))
	closed(t, c)
	path, err := fileOf(t, b.engine, c.ID())
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.engine.Resume(t.Context(), engine.Saved{File: path}, protocol.Config{ReadOnly: true}, &host{exec: allow})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	turn(t, again, say("second"))
	if _, err := os.Stat(filepath.Join(b.cwd, "made")); err == nil {
		t.Error("a read-only conversation wrote a file")
	}
	if body := string(b.provider.Requests()[1].Body); strings.Contains(body, "web_search") {
		t.Errorf("a read-only conversation can search the web: %s", body)
	}
}
