package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/examples/internal/exampletest"
)

func TestNotes(t *testing.T) {
	for action, tt := range map[string]struct{ want, written string }{
		"accept":  {"That goes into ", "buy milk"},
		"decline": {"nothing written: declined", ""},
		"cancel":  {"nothing written: the client cancelled", ""},
		"":        {"nothing written: this MCP client cannot show approval requests", ""},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "note.txt")
		o := &client.Options{Server: codexserver.New(notes("note.txt"), nil)}
		if action != "" {
			o.AskRaw = func(_ context.Context, q *client.Question) (json.RawMessage, error) {
				if !strings.Contains(q.Message, file) {
					t.Errorf("the question does not name the file: %s", q.Message)
				}
				return fmt.Appendf(nil, `{"action":%q}`, action), nil
			}
		}
		r, err := exampletest.Start(t, o).Run(t.Context(), client.Task{Prompt: "buy milk", Cwd: dir})
		if err != nil || !strings.HasPrefix(r.Answer, tt.want) {
			t.Errorf("%s: answer %q, %v, want %q…", action, r.Answer, err, tt.want)
		}
		if text, _ := os.ReadFile(file); string(text) != tt.written {
			t.Errorf("%s: the file holds %q, want %q", action, text, tt.written)
		}
	}
}
