//go:build unix

package native_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// TestSafeCallsRunConcurrently reads two named pipes. The first is written only after the
// second was read, so calls one after another would wait forever. The events come in the
// order of the calls.
func TestSafeCallsRunConcurrently(t *testing.T) {
	b := setup(t, "", native.Limits{},
		providertest.Call(providertest.Shell("c1", "cat", "a"), providertest.Shell("c2", "cat", "b")),
		providertest.Say("done"))
	for _, name := range []string{"a", "b"} {
		if err := syscall.Mkfifo(filepath.Join(b.cwd, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	written := make(chan error, 1)
	go func() {
		err := os.WriteFile(filepath.Join(b.cwd, "b"), []byte("second"), 0)
		if err == nil {
			err = os.WriteFile(filepath.Join(b.cwd, "a"), []byte("first"), 0)
		}
		written <- err
	}()
	h := &host{}
	turn(t, b.start(t, h, protocol.Config{}), say("read"))
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range h.events {
		switch m := m.(type) {
		case protocol.ExecCommandBegin:
			got = append(got, "begin "+m.CallID)
		case protocol.ExecCommandEnd:
			got = append(got, "end "+m.CallID+" "+m.Stdout)
		}
	}
	if diff := cmp.Diff([]string{"begin c1", "end c1 first", "begin c2", "end c2 second"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	last := string(b.provider.Requests()[1].Body)
	if first, second := strings.Index(last, "first"), strings.Index(last, "second"); first < 0 || second < first {
		t.Errorf("the outputs are at %d and %d", first, second)
	}
}

// TestProfileAndStrictRules sets the keys for the user's shell profile and for strict rules.
func TestProfileAndStrictRules(t *testing.T) {
	b := setup(t, "---\n[shell_environment_policy]\nexperimental_use_profile = true\n", native.Limits{},
		providertest.Call(providertest.Shell("c1", "cat", "a")), providertest.Say("done"))
	write(t, filepath.Join(b.cwd, "a"), "text")
	write(t, filepath.Join(b.home, ".bash_profile"), "echo from the profile\n")
	h := &host{}
	turn(t, b.start(t, h, protocol.Config{}), say("read"))
	var printed string
	for _, m := range h.events {
		if end, ok := m.(protocol.ExecCommandEnd); ok {
			printed = end.Stdout
		}
	}
	if printed != "from the profile\ntext" {
		t.Errorf("with the user's profile the command printed %q", printed)
	}

	for strict, asked := range map[bool]bool{false: false, true: true} {
		model := providertest.New(providertest.Call(providertest.Shell("c1", "git", "status")), providertest.Say("done"))
		e, err := native.New(&native.Options{CodexHome: t.TempDir(), Sandbox: native.Sandbox{Strict: strict}, Overrides: map[string]any{
			"model": "m", "model_provider": "p", "model_providers.p.base_url": model.BaseURL(), "approval_policy": "untrusted",
		}})
		if err != nil {
			t.Fatal(err)
		}
		h := &host{}
		c, err := e.Start(t.Context(), protocol.Config{Cwd: b.cwd}, h)
		if err != nil {
			t.Fatal(err)
		}
		turn(t, c, say("look"))
		was := false
		for _, m := range h.events {
			_, question := m.(protocol.ExecApprovalRequest)
			was = was || question
		}
		if was != asked {
			t.Errorf("strict %v: asked for git status: %v", strict, was)
		}
		if err := errors.Join(c.Close(), e.Close()); err != nil {
			t.Error(err)
		}
		model.Close()
	}
}
