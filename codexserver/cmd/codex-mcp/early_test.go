package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEarly answers the first message if it is server/discover and the server is not there in
// time, and passes on everything else as it came.
func TestEarly(t *testing.T) {
	const discover = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}` + "\n"
	const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call"}` + "\n"
	for _, tt := range []struct {
		name, in string
		ready    time.Duration // when the server is there
		fails    bool          // there is no answer
		out      string
		passed   string
	}{
		{"in time", discover + call, 99 * time.Millisecond, false, "", discover + call},
		{"late", discover + call, time.Minute, false, "answer\n", call},
		{"late, and the end of the input", discover, time.Minute, false, "answer\n", ""},
		{"late, without an answer", discover + call, time.Minute, true, "", discover + call},
		{"another message", call + discover, time.Minute, false, "", call + discover},
		{"a notification", strings.Replace(discover, `"id":1,`, "", 1), time.Minute, false, "", strings.Replace(discover, `"id":1,`, "", 1)},
		{"no line", strings.TrimSpace(discover), time.Minute, false, "", strings.TrimSpace(discover)},
		{"nothing", "", time.Minute, false, "", ""},
		{"no JSON", "server/discover\n" + discover, time.Minute, false, "", "server/discover\n" + discover},
		{"a long one", strings.Replace(discover, "{}", `{"x":"`+strings.Repeat("x", 16<<10)+`"}`, 1) + call, time.Minute, false, "", strings.Replace(discover, "{}", `{"x":"`+strings.Repeat("x", 16<<10)+`"}`, 1) + call},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				ready := make(chan struct{})
				begin := time.Now()
				time.AfterFunc(tt.ready, func() { close(ready) })
				in := open(strings.NewReader(tt.in), &out, ready, 100*time.Millisecond, func(request []byte) ([]byte, error) {
					if tt.fails {
						return nil, errors.New("no answer")
					}
					return []byte("answer"), nil
				})
				passed, err := io.ReadAll(in)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{tt.out, tt.passed}, []string{out.String(), string(passed)}); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				if took := time.Since(begin); took > 100*time.Millisecond {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// TestDescribe compares the early answer with that of a server, and sees that it leaves no files.
func TestDescribe(t *testing.T) {
	for _, args := range [][]string{nil, {"-c", "tasks.mode=never"}, {"-c", `tools=["codex","codex-list"]`}} {
		f := newFolders(t)
		writeConfig(t, f.home, "model = \"m\"\n")
		const request = `{"jsonrpc":"2.0","id":7,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
		p := start(t, f, append([]string{"-engine", "native"}, args...)...)
		p.send(request)
		want := p.expect(map[string]any{"id": 7.0}, map[int]bool{})
		p.stdin.Close()
		p.wait()
		delete(want["result"].(map[string]any)["_meta"].(map[string]any), "io.github.codexmcp/engine")

		t.Setenv("CODEX_HOME", f.home)
		var stdout, stderr bytes.Buffer
		o, err := parse("codex-mcp", args, &stdout, &stderr)
		if err != nil {
			t.Fatal(err)
		}
		c, err := configure(o, os.Getenv, o.logger(&stderr))
		if err != nil {
			t.Fatal(err)
		}
		before := files(t, f.home)
		got, err := c.describe(t.Context(), o, []byte(request))
		if err != nil {
			t.Fatal(err)
		}
		normal := func(m map[string]any) string { return strings.ReplaceAll(line(m), version(), "VERSION") }
		if diff := cmp.Diff(normal(want), normal(pattern(t, string(got)))); diff != "" {
			t.Errorf("%v (-server +early)\n%s", args, diff)
		}
		if diff := cmp.Diff(before, files(t, f.home)); diff != "" {
			t.Errorf("%v: files have changed:\n%s", args, diff)
		}
	}
}
