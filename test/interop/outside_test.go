package interop

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/moduleproxy"
)

// mostLines is how many lines the main function of a program of a stranger has, but for those with closing brackets
// alone.
const mostLines = 12

// TestOutside builds small programs in a module of their own, as somebody else would, and runs each.
func TestOutside(t *testing.T) {
	t.Parallel()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"me","version":"1"}}}` + "\n"
	programs := map[string]struct{ folder, in, want string }{
		"peer":     {"testdata/outside/peer", "", "seen [1 2]\n<nil> 3\n"},
		"form":     {"testdata/outside/form", "", "approved test\n"},
		"asking":   {"../../examples/minimal", hello + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"launch"}}` + "\n", `"method":"elicitation/create","params":{"message":"Launch it?"`},
		"embedded": {"testdata/outside/embedded", hello + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"hello"}}}` + "\n", `"content":"You said: hello"`},
	}
	dir := t.TempDir()
	for name, p := range programs {
		source, err := os.ReadFile(filepath.Join(p.folder, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := bytes.Cut(source, []byte("\nfunc main() {\n"))
		lines := 0
		for line := range strings.Lines(string(body)) {
			if strings.Trim(line, "\t})\n") != "" {
				lines++
			}
		}
		if lines == 0 || lines > mostLines {
			t.Errorf("%s has %d lines", name, lines)
		}
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "main.go"), source, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := moduleproxy.Environment(t, filepath.Join("..", ".."))
	for _, args := range [][]string{{"mod", "init", "example.test/outside"}, {"get", "./..."}, {"build", "-o", "bin/", "./..."}} {
		moduleproxy.Command(t, dir, env, args...)
	}
	for name, p := range programs {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "bin", name))
			cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "HOME="+t.TempDir())
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
			if _, err := in.Write([]byte(p.in)); err != nil && p.in != "" {
				t.Error(err)
			}
			var got []byte
			for part := make([]byte, 4096); !bytes.Contains(got, []byte(p.want)); {
				n, err := out.Read(part)
				if got = append(got, part[:n]...); err != nil {
					t.Errorf("%v after %s, want %s", err, got, p.want)
					break
				}
			}
			if err := in.Close(); err != nil {
				t.Error(err)
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}
