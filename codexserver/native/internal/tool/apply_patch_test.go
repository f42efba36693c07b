//go:build unix

package tool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

const addNew = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch"

func TestPatchForms(t *testing.T) {
	arguments, err := json.Marshal(map[string]string{"input": addNew})
	if err != nil {
		t.Fatal(err)
	}
	heredoc := "apply_patch <<'EOF'\n" + addNew + "\nEOF\n"
	for _, tt := range []struct {
		name, path string
		call       tool.Call
	}{
		{"function", "new.txt", tool.Call{Name: "apply_patch", Arguments: string(arguments)}},
		{"free text", "new.txt", tool.Call{Name: "apply_patch", Arguments: addNew, Custom: true}},
		{"program", "new.txt", shellCall("", "apply_patch", addNew)},
		{"working folder", "sub/new.txt", shellCall(`,"workdir":"sub"`, "apply_patch", addNew)},
		{"script", "new.txt", shellCall("", "bash", "-lc", heredoc)},
		{"script with folder", "sub/new.txt", shellCall("", "bash", "-lc", "cd sub && "+heredoc)},
		{"the model's own shell", "new.txt", tool.Call{Shell: &protocol.LocalShellAction{Command: []string{"apply_patch", addNew}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			turn, h := begin(t, dir)
			res, err := turn.Call(t.Context(), tt.call)
			if err != nil || !strings.HasPrefix(res.Output, `{"output":"Success. Updated the following files:\nA new.txt\n","metadata":{"exit_code":0,`) {
				t.Errorf("%q, %v", res.Output, err)
			}
			if b, err := os.ReadFile(filepath.Join(dir, tt.path)); err != nil || string(b) != "x\n" {
				t.Errorf("%q, %v", b, err)
			}
			if want := "patch begin auto=true, patch end true, diff"; h.steps() != want {
				t.Errorf("steps %s, want %s", h.steps(), want)
			}
		})
	}
}

// TestPatchByAProgram checks that the model learns how to apply a patch when it tries a program.
func TestPatchByAProgram(t *testing.T) {
	for script, want := range map[string]bool{"true | apply_patch": true, "exec apply_patch x": true, "apply_patch x; echo on": true, "no-such-program": false, "true # apply_patch": false} {
		turn, _ := begin(t, t.TempDir())
		res, err := turn.Call(t.Context(), shellCall("", "sh", "-c", script))
		if err != nil || strings.Contains(res.Output, "call it alone") != want {
			t.Errorf("%s: %q, %v", script, res.Output, err)
		}
	}
}

func TestPatchThatDoesNotFit(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"*** Begin Patch\n*** Add File: a\n+x\n":                                                 "invalid patch: line 3: ",
		"*** Begin Patch\n*** End Patch":                                                         "patch rejected: ",
		"*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n@@\n-x\n+y\n*** End Patch":    "the patch does not fit: ",
		"*** Begin Patch\n*** Add File: c\n+x\n*** Update File: c\n@@\n-nope\n+y\n*** End Patch": "the patch does not fit: ",
		"*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: missing\n*** End Patch":          "the patch does not fit: ",
		"*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n context\n-old\n*** End Patch": "the patch does not fit: ",
	} {
		turn, h := begin(t, dir)
		res, err := turn.Call(t.Context(), tool.Call{Name: "apply_patch", Arguments: text, Custom: true})
		if err != nil || !strings.HasPrefix(res.Output, want) {
			t.Errorf("%q: %q, %v", text, res.Output, err)
		}
		if h.steps() != "" {
			t.Errorf("%q: steps %s", text, h.steps())
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("files %v, %v", entries, err)
	}
}

func TestTurnDiff(t *testing.T) {
	dir := t.TempDir()
	boxtest.Lay(t, dir, ".git/objects/", ".git/refs/", ".git/HEAD=ref: refs/heads/main\n")
	for name, content := range map[string]string{"a.txt": "one\ntwo\nthree\n", "del.txt": "bye\n", "m.txt": "1\n2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	turn, _ := begin(t, dir)
	if got := turn.UnifiedDiff(); got != "" {
		t.Errorf("before: %q", got)
	}
	for _, text := range []string{
		"*** Begin Patch\n*** Add File: new.txt\n+hello\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** Delete File: del.txt\n*** End Patch",
		"*** Begin Patch\n*** Update File: a.txt\n@@\n-2\n+TWO\n*** Update File: new.txt\n@@\n hello\n+world\n*** Update File: m.txt\n*** Move to: n.txt\n@@\n-2\n+3\n*** End Patch",
	} {
		res, err := turn.Call(t.Context(), tool.Call{Name: "apply_patch", Arguments: text, Custom: true})
		if err != nil || !strings.HasPrefix(res.Output, `{"output":"Success`) {
			t.Fatalf("%q, %v", res.Output, err)
		}
	}
	want := `diff --git a/a.txt b/a.txt
index 4cb29ea38f70d7c61b2a3a25b02e3bdf44905402..ddc897f039f57aa91e16efa6dfde386c4255206f
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three
diff --git a/del.txt b/del.txt
deleted file mode 100644
index b023018cabc396e7692c70bbf5784a93d3f738ab..0000000000000000000000000000000000000000
--- a/del.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/m.txt b/n.txt
index 1191247b6d9a206f6ba3d8ac79e26d041dd86941..2b2f2e1b9261c50c3816610eb3eb140fabf1745a
--- a/m.txt
+++ b/n.txt
@@ -1,2 +1,2 @@
 1
-2
+3
diff --git a/new.txt b/new.txt
new file mode 100644
index 0000000000000000000000000000000000000000..94954abda49de8615a048f8d2e64b5de848e27a1
--- /dev/null
+++ b/new.txt
@@ -0,0 +1,2 @@
+hello
+world
`
	if diff := cmp.Diff(want, turn.UnifiedDiff()); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
}
