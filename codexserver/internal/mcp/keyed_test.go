package mcp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

const aKey = `"_meta":{"io.github.codexmcp/idempotencyKey":"k",`

// keyed calls codex with an idempotency key, as a client with tasks.
func keyed(t *testing.T, p *jsonrpc.Peer) (raw json.RawMessage) {
	t.Helper()
	params := `{"name":"codex","arguments":{"prompt":"go"},` + strings.Replace(polling, `"_meta":{`, aKey, 1) + `}`
	if err := p.Call(t.Context(), "tools/call", json.RawMessage(params), &raw); err != nil {
		t.Fatal(err)
	}
	return raw
}

// keyedTask is keyed for a call that must become a task, and returns its id.
func keyedTask(t *testing.T, p *jsonrpc.Peer) string {
	t.Helper()
	raw := keyed(t, p)
	var r modern.CreateTaskResult
	if err := modern.Decode(raw, &r); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return r.TaskID
}

// TestKeyOfTask calls twice with a key, and again after the server was killed. There is one task,
// which the next server continues once.
func TestKeyOfTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home, left := t.TempDir(), t.TempDir()
		p, end := serveHome(t, heir{Engine: lostWork}, home)
		defer end()
		id := keyedTask(t, p)
		if again := keyedTask(t, p); again != id {
			t.Errorf("the tasks %s and %s", id, again)
		}
		synctest.Wait()
		if err := os.CopyFS(left, os.DirFS(home)); err != nil {
			t.Fatal(err)
		}
		keys, err := filepath.Glob(filepath.Join(left, "codex-mcp", "idempotency", "*.json"))
		if err != nil || len(keys) != 1 || os.Chmod(keys[0], 0o600) != nil { // CopyFS lets others read
			t.Fatalf("%v, %v", keys, err)
		}
		if files, err := filepath.Glob(filepath.Join(left, "codex-mcp", "tasks", "task-*")); err != nil || len(files) != 1 {
			t.Errorf("%v, %v", files, err)
		}
		next := heir{lostWork, make(chan struct{}), make(chan struct{}, 2)}
		close(next.may)
		p, end = serveHome(t, next, left)
		defer end()
		if raw := keyed(t, p); !strings.Contains(string(raw), "continued") {
			t.Errorf("%s", raw)
		}
		if len(next.resumed) != 1 {
			t.Errorf("resumed %d times", len(next.resumed))
		}
	})
}

// TestKeyOfQuestion loses the question of a call, and calls again with its key. The second call has
// the question, and its answer counts.
func TestKeyOfQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{}
		c := connectModern(t, w.engine(), &codexserver.Options{Home: t.TempDir()})
		call := func() answer {
			meta := strings.TrimPrefix(c.meta("x"), "{")
			meta = meta[:strings.LastIndex(meta, `,"progressToken"`)] + "}"
			return c.startWith("tools/call", fmt.Sprintf(`{"name":"codex","arguments":%s,%s%s}`, promptOf("git"), aKey, meta)).wait()
		}
		first := call()
		<-time.After(time.Second)
		again := call()
		if first.input == nil || again.input == nil {
			t.Fatalf("%s, %s", first.text(), again.text())
		}
		got := c.round("codex", promptOf("git"), c.state(again), `{"q1":`+accepts+`}`).wait()
		if !strings.HasPrefix(got.text(), "git: approved") || w.did() != "1 git" {
			t.Errorf("%s; turns and commands %q", got.text(), w.did())
		}
	})
}
