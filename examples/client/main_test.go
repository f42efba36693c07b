package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/gobuild"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestMain(m *testing.M) { os.Exit(memdir.Run(m)) }

// TestConversation has a conversation with the real program and a scripted model. It
// approves a command, denies another, and stops at a third.
func TestConversation(t *testing.T) {
	model := providertest.New(
		providertest.Call(providertest.Shell("1", "mkdir", "made")),
		providertest.Say("It is there."),
		providertest.Call(providertest.Shell("2", "rmdir", "made")),
		providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
			return providertest.Say("I was told: " + r.LastToolOutput())
		}},
		providertest.Call(providertest.Shell("3", "rmdir", "made")),
	)
	defer model.Close()
	server := build(t, model.BaseURL())

	transcript := string(must.Get(os.ReadFile("testdata/conversation.txt"))(t))
	play(t, server(), strings.ReplaceAll(transcript, "DIR", server().Dir))
	must.Get(os.Stat(filepath.Join(server().Dir, "made")))(t)
}

// TestTwoQuestions asks two questions at a time. Each has an answer of its own.
func TestTwoQuestions(t *testing.T) {
	var out strings.Builder
	ask := asker(strings.NewReader("one\ntwo\n"), &out)
	answers := make(chan string, 2)
	for range cap(answers) {
		go func() { answers <- ask("?") }()
	}
	if got := []string{<-answers, <-answers}; len(got[0]) != 3 || len(got[1]) != 3 || got[0] == got[1] || out.String() != "??" {
		t.Errorf("%q to %s", got, &out)
	}
	must.Equal(t, "after the end of the input", "", ask("?"))
}

// play types the transcript's text after "> " and after questions, and compares the whole transcript with the output.
func play(t *testing.T, server *exec.Cmd, transcript string) {
	t.Helper()
	var typed, want strings.Builder
	for line := range strings.Lines(transcript) {
		prompt, input, _ := strings.Cut(line, "stop) ")
		if rest, ok := strings.CutPrefix(line, "> "); ok {
			prompt, input = "", rest
			want.WriteString("> ")
		} else if input != "" {
			prompt += "stop) "
		}
		want.WriteString(prompt) // a terminal would show the input after it
		typed.WriteString(input)
	}
	out := must.Get(os.Create(filepath.Join(t.TempDir(), "screen")))(t)
	defer out.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := run(ctx, server, strings.NewReader(typed.String()), out); err != nil {
		t.Error("run:", err)
	}
	got := must.Get(os.ReadFile(out.Name()))(t)
	must.Equal(t, "result", want.String(), string(got))
}

// build builds codex-mcp and returns a function that makes a command for it.
func build(t *testing.T, baseURL string) func() *exec.Cmd {
	t.Helper()
	testenv.NeedsPrograms(t, "go")
	bin, home, cwd := filepath.Join(t.TempDir(), "codex-mcp.exe"), t.TempDir(), t.TempDir()
	must.OK(t, gobuild.Program(bin, "../../codexserver/cmd/codex-mcp"))
	config := fmt.Sprintf("model = \"m\"\nmodel_provider = \"p\"\n[model_providers.p]\nbase_url = %q\nwire_api = \"chat\"\n", baseURL)
	must.OK(t, os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600))
	return func() *exec.Cmd {
		cmd := exec.Command(bin, "--engine", "native")
		cmd.Dir, cmd.Env = cwd, append(os.Environ(), "CODEX_HOME="+home)
		return cmd
	}
}
