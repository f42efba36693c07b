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
	"strings"
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

// longRollouts are the turns of conversations of 1 GB.
var longRollouts = []struct {
	name string
	turn func(write func(kind, payload string), n int)
}{
	{"outputs", func(write func(kind, payload string), n int) {
		for range 10 {
			write("response_item", `{"type":"function_call","name":"shell","arguments":"{}","call_id":"c"}`)
			write("response_item", `{"type":"function_call_output","call_id":"c","output":"`+strings.Repeat("x", 10<<10)+`"}`)
		}
	}},
	{"outputs and compactions", func(write func(kind, payload string), n int) {
		write("response_item", `{"type":"function_call_output","call_id":"c","output":"`+strings.Repeat("x", 100<<10)+`"}`)
		switch n % 100 {
		case 0:
			write("compacted", `{"message":"summary","replacement_history":[{"type":"message","role":"user","content":[]}]}`)
		case 50:
			write("compacted", `{"message":"summary"}`)
		}
	}},
	{"events", func(write func(kind, payload string), n int) {
		write("event_msg", `{"type":"agent_message","message":"`+strings.Repeat("y", 10<<10)+`"}`)
	}},
	{"lines of 15 and 60 MiB", func(write func(kind, payload string), n int) {
		write("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"`+strings.Repeat("z", 15<<20)+`"}]}`)
		write("response_item", `{"type":"function_call_output","call_id":"c","output":"`+strings.Repeat("x", 60<<20)+`"}`)
	}},
}

// TestSoakLongRollouts lists, shows, resumes and continues conversations of 1 GB. The program
// never has more than 200 MB in memory.
func TestSoakLongRollouts(t *testing.T) {
	const size, most = 1_000_000_000, 200_000
	for n, long := range longRollouts {
		t.Run(long.name, func(t *testing.T) {
			f := newFolders(t)
			answer := providertest.Say("Done.")
			answer.Repeat = true
			model := providertest.New(answer)
			t.Cleanup(model.Close)
			writeConfig(t, f.home, fmt.Sprintf(configOf, model.BaseURL()))
			id := fmt.Sprintf("0199a2b3-c4d5-7000-8000-00000000000%d", n)
			path := filepath.Join(f.home, "sessions", "2025", "09", "30", "rollout-2025-09-30T10-11-12-"+id+".jsonl")
			writeLong(t, path, id, size, long.turn)
			for _, call := range []string{
				`"tools/call","params":{"name":"codex-list","arguments":{}}`,
				`"tools/call","params":{"name":"codex-show","arguments":{"threadId":"` + id + `","what":"transcript"}}`,
				`"tools/call","params":{"name":"codex-reply","arguments":{"threadId":"` + id + `","prompt":"go on"}}`,
			} {
				p := start(t, f, "--engine", "native")
				p.hello("{}")
				p.send(`{"jsonrpc":"2.0","id":1,"method":` + call + `}`)
				late := time.AfterFunc(5*time.Minute, func() { p.cmd.Process.Kill() })
				if got := p.answer(1); !contains(got, map[string]any{"result": map[string]any{"isError": nil}}) {
					t.Errorf("%s: %.500v", call, got)
				}
				late.Stop()
				kB := peak(t, p.cmd.Process.Pid)
				t.Logf("%d MB at %.40s", kB/1000, call)
				if kB > most {
					t.Errorf("%d kB at %.40s, want at most %d", kB, call, most)
				}
				p.stdin.Close()
				p.wait()
			}
		})
	}
}

// answer waits for the answer to a request, or for the end of the process.
func (p *process) answer(id float64) map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	for read := 0; ; p.news.Wait() {
		for ; read < len(p.said); read++ {
			if p.said[read]["id"] == id {
				return p.said[read]
			}
		}
		if p.ended {
			return nil
		}
	}
}

// writeLong writes a rollout of a size.
func writeLong(t *testing.T, path, id string, size int64, turn func(write func(kind, payload string), n int)) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := bufio.NewWriterSize(file, 1<<20)
	var written int64
	write := func(kind, payload string) {
		n, err := fmt.Fprintf(out, `{"timestamp":"2025-09-30T10:11:12.000Z","type":"%s","payload":%s}`+"\n", kind, payload)
		if err != nil {
			t.Fatal(err)
		}
		written += int64(n)
	}
	write("session_meta", `{"id":"`+id+`","cwd":"/"}`)
	for n := 1; written < size; n++ {
		write("response_item", fmt.Sprintf(`{"type":"message","role":"user","content":[{"type":"input_text","text":"question %d"}]}`, n))
		write("event_msg", fmt.Sprintf(`{"type":"user_message","message":"question %d"}`, n))
		turn(write, n)
		write("event_msg", fmt.Sprintf(`{"type":"agent_message","message":"answer %d"}`, n))
		write("response_item", fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"answer %d"}]}`, n))
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
}

// peak returns the largest resident memory that a process has had, in kB.
func peak(t *testing.T, pid int) (kB int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscan(after, &kB); err != nil {
		t.Fatal(err)
	}
	return kB
}
