package tool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestNamesOfFiles has calls that name a file in the composed form of Unicode, where the folder has the other one, and
// calls with names that a shell would replace.
func TestNamesOfFiles(t *testing.T) {
	const there, said = "cafe\u0301", "caf\u00e9"
	for _, tt := range []struct {
		name  string
		calls [][2]string // a tool and its arguments
		want  string      // the beginning of the last answer
		has   string      // what the file has then
	}{
		{"read", [][2]string{{"read", `{"path":"NAME/f.txt"}`}}, "1\tone\n", "one\n"},
		{"list", [][2]string{{"list", `{"path":"NAME"}`}}, "f.txt\n", "one\n"},
		{"search", [][2]string{{"search", `{"path":"NAME","pattern":"o"}`}}, said + "/f.txt:1:one\n", "one\n"},
		{"edit", [][2]string{{"edit", `{"path":"NAME/f.txt","old":"one","new":"two"}`}}, "Success", "two\n"},
		{"write unread", [][2]string{{"write", `{"path":"NAME/f.txt","content":"two\n"}`}}, said + "/f.txt exists, and you have not read it", "one\n"},
		{"write", [][2]string{{"read", `{"path":"NAME/f.txt"}`}, {"write", `{"path":"NAME/f.txt","content":"two\n"}`}}, "Success", "two\n"},
		{"write what was read by the other name", [][2]string{{"read", `{"path":"THERE/f.txt"}`}, {"write", `{"path":"NAME/f.txt","content":"two\n"}`}}, "Success", "two\n"},
		{"a variable", [][2]string{{"write", `{"path":"$HOME/f.txt","content":"two\n"}`}}, `"$HOME/f.txt": no shell reads this path`, "one\n"},
		{"a home", [][2]string{{"write", `{"path":"~user/f.txt","content":"two\n"}`}}, `"~user/f.txt": no shell reads this path`, "one\n"},
		{"an address", [][2]string{{"write", `{"path":"file:///f.txt","content":"two\n"}`}}, `"file:///f.txt" is an address`, "one\n"},
		{"an address to read", [][2]string{{"read", `{"path":"file:///f.txt"}`}}, `"file:///f.txt" is an address`, "one\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, h := t.TempDir(), &host{}
			boxtest.Lay(t, dir, there+"/f.txt=one\n")
			turn := turnOf(tool.Options{Environ: environ, FileTools: true, Sandbox: &fakeSandbox{host: h}}, h, dir, "on-request", "workspace-write")
			var got string
			for _, call := range tt.calls {
				arguments := strings.NewReplacer("NAME", said, "THERE", there).Replace(call[1])
				got = called(t, turn, tool.Call{ID: "c", Name: call[0], Arguments: arguments}).Output
			}
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("the answer is %q, want %q", got, tt.want)
			}
			files := map[string]string{}
			must.OK(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					content := must.Get(os.ReadFile(path))(t)
					files[strings.TrimPrefix(path, dir+"/")] = string(content)
				}
				return err
			}))
			must.Equal(t, "files", map[string]string{there + "/f.txt": tt.has}, files)
		})
	}
}
