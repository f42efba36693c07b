package appserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestStore plays turns in which Codex writes its rollout. It is in the store when a turn has
// ended; when the store fails the client is told. What became of a turn that Codex does not have
// is not known.
func TestStore(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		disk, name := t.TempDir(), "sessions/2026/11/22/rollout-2026-11-22T10-00-00-"+threadID+".jsonl"
		d, err := workertest.OpenDir(disk, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		m, err := worker.Open(t.Context(), f.home, d, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		path := filepath.Join(f.home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		written := ""
		f.rollout = path
		f.on["thread/turns/list"] = reply(`{"data":[]}`)
		f.turn = func(r *run) {
			written += turnContext("read-only", "", "untrusted") + "\n"
			writeFile(t, path, written)
			r.complete("completed")
		}
		h := &recorder{}
		conv, err := f.engine(appserver.Options{CodexHome: f.home, Store: m}).Start(t.Context(), protocol.Config{Cwd: "/work"}, h)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := conv.Turn(t.Context(), text("go")); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(disk, name)); err != nil || string(got) != written || h.count("background_event") > 0 {
				t.Errorf("%v; the store has\n%s\nCodex wrote\n%s", err, got, written)
			}
		}
		err = conv.Turn(t.Context(), protocol.TurnInput{Key: "another", Continue: func(string) {}})
		if err == nil || !strings.Contains(err.Error(), "is not known") {
			t.Errorf("a turn that Codex does not have: %v", err)
		}
		next, err := workertest.OpenDir(disk, 2)
		if err != nil {
			t.Fatal(err)
		}
		defer next.Close()
		if err := conv.Turn(t.Context(), text("go")); err != nil || h.count("background_event") != 1 {
			t.Errorf("%v; events %v", err, h.types())
		}
	})
}
