//go:build unix

package patch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// changesOf are changes as Codex announces them: each a kind and a path, maybe a path to move to, and then the text.
func changesOf(dir string, announced []string) map[string]protocol.FileChange {
	in := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		return dir + "/" + name
	}
	changes := map[string]protocol.FileChange{}
	for _, one := range announced {
		head, text, _ := strings.Cut(one, "\n")
		words := strings.Fields(head)
		c := protocol.FileChange{}
		switch words[0] {
		case "add":
			c.Add = &protocol.FileContent{Content: text}
		case "delete":
			c.Delete = &protocol.FileContent{Content: text}
		default:
			c.Update = &protocol.FileUpdate{UnifiedDiff: text}
			if len(words) > 2 {
				c.Update.MovePath = new(in(words[2]))
			}
		}
		changes[in(words[1])] = c
	}
	return changes
}

// TestLost asks about patches, as the native engine makes them and as Codex announces them. Who reads the question alone can say
// what is lost.
func TestLost(t *testing.T) {
	const toB, diffA = "*** Update File: a\n*** Move to: b\n@@\n-a1\n+A1\n", "\n@@ -1,2 +1,2 @@\n-a1\n+A1\n a2\n"
	for _, tt := range []struct {
		name      string
		text      string   // for the native engine
		announced []string // by Codex
		want      string   // what both ask
		codex     string   // what is asked about Codex's patch if that is not the same
	}{
		{"an add", "*** Add File: new\n+x\n", []string{"add new\nx\n"}, "- add `/w/new` (+1 -0)\n+x", ""},
		{"replaces", "*** Add File: a\n+x\n", []string{"add a\nx\n"}, "- replace `/w/a` (+1 -2)\n@@ -1,2 +1 @@\n-a1\n-a2\n+x", ""},
		{"replaces by another name", "*** Add File: sub/../a\n+x\n", []string{"add sub/../a\nx\n"}, "- replace `/w/a` (+1 -2)\n@@ -1,2 +1 @@\n-a1\n-a2\n+x", ""},
		{"replaces by the same", "*** Add File: a\n+a1\n+a2\n", []string{"add a\na1\na2\n"}, "- replace `/w/a`", ""},
		{"replaces by nothing", "*** Add File: a\n", []string{"add a\n"}, "- replace `/w/a` (+0 -2)\n@@ -1,2 +0,0 @@\n-a1\n-a2", ""},
		{"replaces what is no text", "*** Add File: binary\n+x\n", []string{"add binary\nx\n"}, "- replace `/w/binary` (+1 -1): what is lost is not text\n@@ -1 +1 @@\n-x�\n+x", ""},
		{"replaces through a link", "*** Add File: link\n+x\n", []string{"add link\nx\n"}, "- replace `/w/link` → `/w/a` (+1 -2)\n@@ -1,2 +1 @@\n-a1\n-a2\n+x", ""},
		{"replaces through a folder that is a link", "*** Add File: dir/a\n+x\n", []string{"add dir/a\nx\n"}, "- replace `/w/dir/a` → `/w/sub/a` (+1 -1)\n@@ -1 +1 @@\n-s\n+x", ""},
		{
			"replaces outside, through a link", "*** Add File: out\n+x\n", []string{"add out\nx\n"}, "- replace `/w/out` → `/o/f` (outside the workspace) (+1 -1)\n@@ -1 +1 @@\n-o\n+x",
			"- replace `/w/out` → `/o/f` (outside the workspace) (+1 -0): what is lost there is not shown: it is a file of 2 bytes outside of the folder\n@@ -0,0 +1 @@\n+x",
		},
		{"makes what a link leads to", "*** Add File: nowhere\n+x\n", []string{"add nowhere\nx\n"}, "- add `/w/nowhere` → `/w/none` (+1 -0)\n+x", ""},
		{
			"replaces much", "*** Add File: large\n+x\n", []string{"add large\nx\n"}, "- replace `/w/large` (+1 -1)",
			"- replace `/w/large` (+1 -0): what is lost there is not shown: it is a file of 2097153 bytes\n@@ -0,0 +1 @@\n+x",
		},
		{"deletes", "*** Delete File: a\n", []string{"delete a\na1\na2\n"}, "- delete `/w/a` (+0 -2)\n-a1\n-a2", ""},
		{"deletes and adds", "*** Delete File: a\n*** Add File: a\n+x\n", nil, "- replace `/w/a` (+1 -2)\n@@ -1,2 +1 @@\n-a1\n-a2\n+x", ""},
		{
			"deletes a link", "*** Delete File: link\n", []string{"delete link\na1\na2\n"},
			"- delete `/w/link` (+0 -1): a symbolic link, and what it leads to stays\n-a\n\\ No newline at end of file", "",
		},
		{"moves", strings.Replace(toB, "to: b", "to: c", 1), []string{"update a c" + diffA}, "- update `/w/a` and move it to `/w/c` (+1 -1)\n@@ -1,2 +1,2 @@\n-a1\n+A1\n a2", ""},
		{
			"moves over", toB, []string{"update a b" + diffA},
			"- delete `/w/a` (+0 -2): it moves over /w/b\n-a1\n-a2\n- replace `/w/b` (+2 -1)\n@@ -1 +1,2 @@\n-b\n+A1\n+a2", "",
		},
		{
			"moves over through a link", strings.Replace(toB, "to: b", "to: toB", 1), []string{"update a toB" + diffA},
			"- delete `/w/a` (+0 -2): it moves over /w/b\n-a1\n-a2\n- replace `/w/toB` → `/w/b` (+2 -1)\n@@ -1 +1,2 @@\n-b\n+A1\n+a2", "",
		},
		{
			"moves over outside", strings.Replace(toB, "to: b", "to: out", 1), []string{"update a out" + diffA},
			"- delete `/w/a` (+0 -2): it moves over /o/f\n-a1\n-a2\n- replace `/w/out` → `/o/f` (outside the workspace) (+2 -1)\n@@ -1 +1,2 @@\n-o\n+A1\n+a2",
			"- update `/w/a` and move it to `/w/out` → `/o/f` (outside the workspace), which replaces what is there (+1 -1): " +
				"what is lost there is not shown: it is a file of 2 bytes outside of the folder\n@@ -1,2 +1,2 @@\n-a1\n+A1\n a2",
		},
		{
			"moves a link over", strings.Replace(toB, "File: a", "File: link", 1), []string{"update link b" + diffA},
			"- delete `/w/link` (+0 -1): a symbolic link, and what it leads to stays; it moves over /w/b\n-a\n\\ No newline at end of file\n- replace `/w/b` (+2 -1)\n@@ -1 +1,2 @@\n-b\n+A1\n+a2", "",
		},
		{
			"moves a link", strings.Replace(strings.Replace(toB, "File: a", "File: link", 1), "to: b", "to: c", 1), []string{"update link c" + diffA},
			"- update `/w/link` and move it to `/w/c` (+1 -1): a symbolic link, and what it leads to stays\n@@ -1,2 +1,2 @@\n-a1\n+A1\n a2", "",
		},
		{
			"moves over what moves on", toB + "*** Update File: b\n*** Move to: c\n", []string{"update a b" + diffA, "update b c\n@@ -1 +1 @@\n-b\n+B\n"},
			"- delete `/w/a` (+0 -2)\n-a1\n-a2\n- update `/w/b` and move it to `/w/c` (+2 -1)\n@@ -1 +1,2 @@\n-b\n+A1\n+a2",
			"- update `/w/a` and move it to `/w/b`, which replaces what is there (+1 -1): the patch names it twice, so that one of the texts is lost\n@@ -1,2 +1,2 @@\n-a1\n+A1\n a2\n" +
				"- update `/w/b` and move it to `/w/c` (+1 -1): the patch names it twice, so that one of the texts is lost\n@@ -1 +1 @@\n-b\n+B",
		},
		{
			"adds where another file moved", strings.Replace(toB, "to: b", "to: c", 1) + "*** Add File: c\n+x\n", []string{"update a c" + diffA, "add c\nx\n"},
			"- delete `/w/a` (+0 -2)\n-a1\n-a2\n- add `/w/c` (+1 -0)\n+x",
			"- update `/w/a` and move it to `/w/c` (+1 -1): the patch names it twice, so that one of the texts is lost\n@@ -1,2 +1,2 @@\n-a1\n+A1\n a2\n" +
				"- add `/w/c` (+1 -0): the patch names it twice, so that one of the texts is lost\n+x",
		},
		{
			"replaces one file by two names", "", []string{"add a\nx\n", "add link\ny\n"}, "",
			"- replace `/w/a` (+1 -2): the patch names it twice, so that one of the texts is lost\n@@ -1,2 +1 @@\n-a1\n-a2\n+x\n" +
				"- replace `/w/link` (+1 -2): the patch names it twice, so that one of the texts is lost\n@@ -1,2 +1 @@\n-a1\n-a2\n+y",
		},
		{"a folder in the way", "", []string{"add sub\nx\n"}, "", "- add `/w/sub` (+1 -0): a folder is there\n+x"},
		{"a folder in the way of a move", "", []string{"update a sub" + diffA}, "", "- update `/w/a` and move it to `/w/sub` (+1 -1): a folder is there\n@@ -1,2 +1,2 @@\n-a1\n+A1\n a2"},
		{"a file in the way of a folder", "", []string{"add a/x\nx\n"}, "", "- add `/w/a/x` (+1 -0): not a directory\n+x"},
		{
			"another case", strings.Replace(toB, "to: b", "to: A", 1), []string{"update a A" + diffA},
			"- update `/w/a` and move it to `/w/A` (+1 -1)\n@@ -1,2 +1,2 @@\n-a1\n+A1\n a2", "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
			dir := filepath.Join(top, "w")
			writeTree(t, top, map[string]string{
				"w/a": "a1\na2\n", "w/b": "b\n", "w/sub/a": "s\n", "w/binary": "x\xff\n", "w/large": strings.Repeat("l", 2<<20) + "\n", "o/f": "o\n",
			})
			for name, to := range map[string]string{"link": "a", "toB": "b", "dir": "sub", "out": "../o/f", "nowhere": "none"} {
				must.OK(t, os.Symlink(to, filepath.Join(dir, name)))
			}
			work := patch.Folder{Path: dir}
			asks := func(changes map[string]protocol.FileChange, links, why map[string]string) string {
				q := (approval.Patch{Cwd: dir, Changes: changes, Links: links, Why: why}).Question("", "")
				var lines []string
				for i, line := range strings.Split(strings.ReplaceAll(q.Message, top, ""), "\n") {
					if line = strings.TrimPrefix(line, approval.DiffIndent); i > 0 && !strings.HasPrefix(line, "```") {
						lines = append(lines, line)
					}
				}
				return strings.Join(lines, "\n")
			}
			if tt.text != "" {
				p := plan(t, dir, strings.TrimSuffix(tt.text, "\n"))
				got := asks(p.Changes(), p.Links(), p.Why())
				if tt.name == "replaces much" {
					got, _, _ = strings.Cut(got, "\n")
				}
				must.Equal(t, "native", tt.want, got)
			} else if p, err := planOf(dir, "*** Add File: sub\n+x"); err == nil {
				t.Errorf("a folder may be replaced: %v", p.Changes())
			}
			if tt.announced != nil {
				a := patch.Announce(work, changesOf(dir, tt.announced), false)
				must.OK(t, a.Check())
				want := tt.want
				if tt.codex != "" {
					want = tt.codex
				}
				must.Equal(t, "Codex", want, asks(a.Changes, a.Links, a.Why))
			}
		})
	}
}

// TestAnnouncedChecks changes what is there while a question is open.
func TestAnnouncedChecks(t *testing.T) {
	const diff = "\n@@ -1 +1 @@\n-a\n+A\n"
	for name, tt := range map[string]struct {
		announced string
		meanwhile string // a shell script
		changed   string // which path, "" if nothing that matters was changed
	}{
		"nothing":                      {"add a\nx\n", "true", ""},
		"another file":                 {"add a\nx\n", "echo b2 >b", ""},
		"what is replaced":             {"add a\nx\n", "echo longer >a", "a"},
		"with its old time and size":   {"add a\nx\n", "touch -r a stamp; printf 'z\\n' >a; touch -r stamp a", "a"},
		"by another file":              {"add a\nx\n", "cp -p a c; mv c a", "a"},
		"there is a file now":          {"add new\nx\n", "echo >new", "new"},
		"there is none any more":       {"add a\nx\n", "rm a", "a"},
		"there is a link now":          {"add new\nx\n", "ln -s b new", "new"},
		"a link leads elsewhere":       {"add link\nx\n", "ln -sf b link", "a"},
		"what is not shown":            {"add out\nx\n", "echo more >>../o/f", "../o/f"},
		"what a move replaces":         {"update a b" + diff, "echo b2 >b", "b"},
		"what moves":                   {"update a c" + diff, "echo a2 >>a", "a"},
		"where a move leads":           {"update a c" + diff, "echo >c", "c"},
		"what is deleted":              {"delete a\na\n", "echo a2 >>a", "a"},
		"a link that is deleted":       {"delete link\na\n", "ln -sf b link", "link"},
		"what a deleted link leads to": {"delete link\na\n", "echo a2 >>a", ""},
		"an update finds its own":      {"update a" + diff, "echo a2 >>a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
			dir := filepath.Join(top, "w")
			writeTree(t, top, map[string]string{"w/a": "a\n", "w/b": "b\n", "o/f": "o\n"})
			must.OK(t, os.Symlink("a", filepath.Join(dir, "link")), os.Symlink("../o/f", filepath.Join(dir, "out")))
			a := patch.Announce(patch.Folder{Path: dir}, changesOf(dir, []string{tt.announced}), false)
			sh := exec.Command("sh", "-ec", tt.meanwhile)
			sh.Dir = dir
			if out, err := sh.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			got := ""
			if err := a.Check(); err != nil {
				got = err.Error()
			}
			want := ""
			if tt.changed != "" {
				want = filepath.Join(dir, tt.changed) + " was changed while the question was open"
			}
			must.Equal(t, "what was changed", want, got)
		})
	}
}

// TestAnnouncedLate looks at what is there when the patch may have been written: what can be of it is not called lost.
func TestAnnouncedLate(t *testing.T) {
	const diff = "\n@@ -1 +1 @@\n-a\n+A\n"
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	writeTree(t, dir, map[string]string{"a": "a\n", "b": "b\n", "half": "on", "done": "one\n", "moved": "A\n"})
	for announced, want := range map[string]string{
		"add new\none\n": "add", "add half\none\n": "add", "add done\none\n": "add", "add a\none\n": "replace",
		"update a b" + diff: "delete", "update gone moved" + diff: "update", "delete gone\na\n": "delete",
	} {
		a := patch.Announce(patch.Folder{Path: dir}, changesOf(dir, []string{announced}), true)
		path := filepath.Join(dir, strings.Fields(announced)[1])
		got := a.Changes[path].Kind()
		if a.Replaces(path) {
			got = "replace"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", announced, got, want)
		}
	}
}

// TestMovedOver reads the hunks of a file that moves over another one, in order to show what that loses.
func TestMovedOver(t *testing.T) {
	lines := "1\n2\n3\n4\n5\n6\n7\n8"
	for name, tt := range map[string]struct{ before, diff, want string }{
		"one hunk":                 {lines, "@@ -1,2 +1,2 @@\n-1\n+one\n 2\n", "one\n2\n3\n4\n5\n6\n7\n8"},
		"two hunks":                {lines, "@@ -1,2 +1 @@\n-1\n 2\n@@ -5,2 +4,3 @@\n 5\n+and\n 6\n", "2\n3\n4\n5\nand\n6\n7\n8"},
		"lines before the first":   {"1\n", "@@ -0,0 +1 @@\n+0\n", "0\n1\n"},
		"no newline at the end":    {lines, "@@ -8 +8 @@\n-8\n\\ No newline at end of file\n+9\n", "1\n2\n3\n4\n5\n6\n7\n9\n"},
		"none in either":           {lines, "@@ -8 +8 @@\n-8\n\\ No newline at end of file\n+9\n\\ No newline at end of file\n", "1\n2\n3\n4\n5\n6\n7\n9"},
		"what Codex says below":    {lines, "@@ -1,2 +1,2 @@\n-1\n+one\n 2\n\n\nMoved to: /w/x", "one\n2\n3\n4\n5\n6\n7\n8"},
		"no hunk":                  {lines, "", lines},
		"another line":             {lines, "@@ -1,2 +1,2 @@\n-one\n+1\n 2\n", "?"},
		"at another place":         {lines, "@@ -2 +2 @@\n-1\n+one\n", "?"},
		"backwards":                {lines, "@@ -5 +5 @@\n-5\n+five\n@@ -1 +1 @@\n-1\n+one\n", "?"},
		"beyond the end":           {lines, "@@ -99 +99 @@\n-1\n+one\n", "?"},
		"a number without end":     {lines, "@@ -99999999999999999999 +1 @@\n-1\n+one\n", "?"},
		"too few lines":            {lines, "@@ -1,3 +1 @@\n-1\n", "?"},
		"a header that is no such": {lines, "@@ what @@\n-1\n", "?"},
	} {
		dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
		writeTree(t, dir, map[string]string{"a": tt.before, "b": ""})
		a := patch.Announce(patch.Folder{Path: dir}, changesOf(dir, []string{"update a b\n" + tt.diff}), false)
		got := "?"
		if c := a.Changes[filepath.Join(dir, "a")]; c.Delete != nil {
			got = ""
			for line := range strings.Lines(a.Changes[filepath.Join(dir, "b")].Diff()) {
				switch line[0] {
				case '+':
					got += line[1:]
				case '\\':
					got = strings.TrimSuffix(got, "\n")
				}
			}
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
