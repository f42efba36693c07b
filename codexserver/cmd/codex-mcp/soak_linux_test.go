//go:build soak

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

var conversations = flag.Int("conversations", 3000, "begin this `number` of conversations at once")

// TestSoakManyConversations begins 3,000 conversations at once over standard input, in a server
// with at most 1,024 descriptors. All have begun before the model answers the first. All
// are answered, and afterwards they hold no descriptors.
func TestSoakManyConversations(t *testing.T) {
	n := *conversations
	f := newFolders(t)
	answer := providertest.Say("Done.")
	hold := make(chan struct{})
	answer.Repeat, answer.Wait = true, hold
	model := providertest.New(answer)
	t.Cleanup(model.Close)
	writeConfig(t, f.home, fmt.Sprintf(configOf, model.BaseURL()))
	bin := built(t)
	cmd := exec.Command("sh", "-c", `ulimit -n 1024; exec "$0" --engine native`, bin)
	cmd.Dir = f.cwd
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.user, "CODEX_HOME=" + f.home}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(15*time.Minute, func() { cmd.Process.Kill() })
	t.Cleanup(func() { late.Stop(); cmd.Process.Kill() })
	var all bytes.Buffer
	all.WriteString(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n")
	for id := 1; id <= n; id++ {
		fmt.Fprintf(&all, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"go"}}}`+"\n", id)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		io.Copy(in, &all) // an error shows in the answers
	}()
	begun, answered := 0, map[float64]bool{}
	for lines := bufio.NewReaderSize(out, 1<<20); len(answered) < n; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%d have begun, %d of %d were answered: %v", begun, len(answered), n, err)
		}
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		id, _ := m["id"].(float64)
		switch {
		case contains(m, map[string]any{"params": map[string]any{"msg": map[string]any{"type": "task_started"}}}):
			if begun++; begun == n {
				close(hold)
			}
		case id == 0:
		case begun < n || answered[id] || !contains(m, map[string]any{"result": map[string]any{"isError": nil, "content": []any{map[string]any{"text": "Done."}}}}):
			t.Fatalf("%d have begun: %.500s", begun, line)
		default:
			answered[id] = true
		}
	}
	<-written
	if open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", cmd.Process.Pid)); err != nil || len(open) > 100 {
		t.Errorf("%d descriptors are open: %v", len(open), err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
