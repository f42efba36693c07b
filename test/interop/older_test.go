package interop

import (
	"context"
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/google/go-cmp/cmp"
)

// TestOlderClient connects the official client of MCP 2025-03-26, which knows no later version and
// may send batches. Over HTTP it reads their answers; over stdio it takes no array.
func TestOlderClient(t *testing.T) {
	t.Parallel()
	t.Logf("%s", npmRelease(t, "sdk-2025-03-26"))
	server := ours(t)
	for _, e := range engines(t) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			model := providertest.New(providertest.Turn{Text: []string{"Hello."}, Repeat: true})
			t.Cleanup(model.Close)
			cwd := t.TempDir()
			s := e.open(t, server, newHome(t, model, e.wire), cwd)
			raw, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			cmd := exec.CommandContext(ctx, node(), "older.mjs", string(raw))
			cmd.Dir = "typescript"
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			type seen struct {
				Asked, Text, Error string
				Tools, Unread      int
				Answers            []string
			}
			var got seen
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			want := seen{Asked: "2025-03-26", Text: "Hello.", Tools: 8, Answers: []string{}, Unread: 1}
			if e.over == overHTTP {
				want.Answers, want.Unread = []string{"b1", "b2"}, 0
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
