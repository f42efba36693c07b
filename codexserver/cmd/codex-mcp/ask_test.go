package main

import (
	"context"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// person is a user of the program, with a scripted model.
type person struct {
	t     *testing.T
	f     folders
	model *providertest.Server
}

// sit starts a scripted model, with a configuration that asks before each command.
func sit(t *testing.T, turns ...providertest.Turn) *person {
	t.Helper()
	f, model := prepare(t, "untrusted", turns...)
	return &person{t, f, model}
}

var gitInit = providertest.Call(providertest.Shell("c1", "git", "init", "-q"))

// repeated is a turn that repeats what the tool printed.
var repeated = providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
	return providertest.Say("The tool said: " + r.LastToolOutput())
}}

// command returns the program with the person's configuration. It ends with the test.
func (s *person) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	bin := built(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir = s.f.cwd
	cmd.Env = append(os.Environ(), "CODEX_HOME="+s.f.home, "CODEX_BIN="+filepath.Join(s.f.home, "none"))
	return cmd
}

// TestEndToEndAskCheck says at the end of a task whether its check passed, also by the exit status.
func TestEndToEndAskCheck(t *testing.T) {
	t.Parallel()
	for check, want := range map[string]string{
		"true":   "The check `true` passed.",
		"exit 4": "The task is not done: the check `exit 4` failed with exit code 4 at try 3.",
	} {
		done := providertest.Say("All done.")
		done.Repeat = true
		s := sit(t, done)
		cmd := s.command(t, "ask", "--engine", "native", "-a", "never", "--check", check, "do it")
		cmd.Env = append(cmd.Env, "HOME="+s.f.user) // without the profile of who runs the tests
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), want) || (err == nil) != (check == "true") {
			t.Errorf("%s: %v: %s", check, err, out)
		}
		log, err := os.ReadFile(filepath.Join(s.f.home, "codex-mcp", "approvals.log"))
		if lines := strings.Count(string(log), `"event":"begins"`); err != nil || lines == 0 || lines != strings.Count(string(log), `"event":"ends"`) || !strings.Contains(string(log), check) {
			t.Errorf("%s: the log is %s (%v)", check, log, err)
		}
	}
}

// TestEndToEndAskImages shows the model images that are named relative to the current folder, whatever folder the task has.
func TestEndToEndAskImages(t *testing.T) {
	t.Parallel()
	s := sit(t, providertest.Say("I see."))
	const png = "\x89PNG\r\n\x1a\n"
	for _, name := range []string{"a.png", "b c.png", "d.png"} {
		write(t, filepath.Join(s.f.cwd, name), png+name)
	}
	cmd := s.command(t, "ask", "--engine", "native", "-C", t.TempDir(), "-i", "a.png,b c.png", "--image", "d.png", "look")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "I see.") || strings.Contains(string(out), ".png") {
		t.Errorf("%v: %s", err, out)
	}
	body := string(s.model.Requests()[0].Body)
	for _, name := range []string{"a.png", "b c.png", "d.png"} {
		if url := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(png+name)); !strings.Contains(body, url) {
			t.Errorf("the model does not get %s: %s", name, body)
		}
	}
}
