package native_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestAfterCodex continues a conversation of Codex whose quota has ended, by codex-reply. The file is one of
// Codex 0.171.0: a turn with a command, and one that failed at the limit.
func TestAfterCodex(t *testing.T) {
	t.Parallel()
	const id = "01a219a2-3caf-7570-89c3-aaa7cf1b6fb2"
	b := setup(t, "", native.Limits{}, providertest.Say("the third answer"))
	recorded, err := os.ReadFile("testdata/codex-0.171.0.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(b.home, "sessions", "2026", "11", "26", "rollout-2026-11-26T20-53-12-"+id+".jsonl")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	before := strings.ReplaceAll(string(recorded), "$CWD", b.cwd)
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	server := codexserver.New(b.engine, &codexserver.Options{Home: b.home, Folder: b.cwd, Changes: codexserver.ChangeOptions{Off: true}})
	c := servertest.Connect(t, server, nil)
	r, err := c.Tool(t.Context(), "codex-reply", map[string]any{"threadId": id, "prompt": "the third prompt"})
	if err != nil || r.Content != "the third answer" || r.Thread != id {
		t.Fatalf("%v, %+v", err, r)
	}
	request := lastRequest(b)
	at := 0
	for _, want := range []string{"the first prompt", "echo from the command", "Output:", "the first answer", "the second prompt", "the third prompt"} {
		i := strings.Index(request[at:], want)
		if i < 0 {
			t.Fatalf("the model does not read %q in its place: %s", want, request)
		}
		at += i
	}
	after, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(after), before) || !strings.Contains(string(after)[len(before):], "the third answer") {
		t.Errorf("%v; the conversation does not go on in its file", err)
	}
}
