package patch_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestMain(m *testing.M) { os.Exit(memdir.Run(m)) }

// row is one line of testdata/patches.ndjson. It has the result of a patch by Codex 0.42.0 in
// a folder with these files, or another one and why. @OUT is a folder next to it.
type row struct {
	Name  string            `json:"name"`
	Files map[string]string `json:"files"`
	Patch string            `json:"patch"`
	After map[string]string `json:"after"`
	// Changes are set if the patch was tried, Summary if it succeeded.
	Changes map[string]protocol.FileChange `json:"changes"`
	Summary string                         `json:"summary"`
	// Why says why the result is not that of Codex 0.42.0, which rewrote lines that a patch leaves as they
	// are, and stopped half-way.
	Why string `json:"why"`
	// Newest says what Codex 0.171.0 does instead.
	Newest string `json:"newest"`
}

func readRows(t testing.TB) []row {
	t.Helper()
	b := must.Get(os.ReadFile("testdata/patches.ndjson"))(t)
	var rows []row
	for line := range bytes.Lines(b) {
		var r row
		must.OK(t, json.Unmarshal(line, &r))
		rows = append(rows, r)
	}
	return rows
}

// shownOtherwise lists the rows whose diff differs from the recorded one. Ours is another of several shortest edits, does
// not end a line at a lone carriage return, or joins two updates of a file.
var shownOtherwise = []string{
	"lone CR", "same file twice", "same file twice, two names",
	"random 12", "random 15", "random 22", "random 30", "random 39", "random 101", "random 173", "random 185",
}

func TestPatchesAsRecorded(t *testing.T) {
	for _, r := range readRows(t) {
		t.Run(r.Name, func(t *testing.T) {
			top := t.TempDir()
			dir := filepath.Join(top, "work")
			writeTree(t, dir, r.Files)
			text := strings.ReplaceAll(r.Patch, "@OUT", "out")

			var changes map[string]protocol.FileChange
			summary := ""
			p, err := patch.Parse(text)
			if err == nil {
				var plan *patch.Plan
				if plan, err = p.Plan(patch.Folder{Path: dir}, dir); err == nil {
					changes = plan.Changes()
					if err = plan.Apply(); err == nil && !p.IsEmpty() {
						summary = plan.Summary()
					}
				}
			}
			t.Logf("error: %v", err)
			must.Equal(t, fmt.Sprintf("%s: tree", r.Why), r.After, readTree(t, top, dir), cmpopts.EquateEmpty())
			must.Equal(t, "summary", r.Summary, strings.ReplaceAll(summary, "../out", "../@OUT"))
			if r.Changes == nil || r.Summary == "" || slices.Contains(shownOtherwise, r.Name) {
				return // the user is not shown a patch that fails
			}
			must.Equal(t, "changes", r.Changes, relative(dir, changes))
		})
	}
}

// TestParse checks which texts are no patch, and which line is wrong.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"more\n*** Add File: b\n+x\n*** End Patch":                                "invalid patch: line 1: the first line must be",
		"*** Begin Patch\n*** Add File: b\n+x":                                    "invalid patch: line 3: the last line must be",
		"*** Begin Patch\n*** Add File: b\n+x\n*** Rename File: b\n*** End Patch": "invalid patch: line 4: \"*** Rename File: b\" is not one of",
		"<<EOF\nmore\n*** Add File: b\n+x\n*** End Patch\nEOF":                    "invalid patch: line 2: the first line must be",
		"<<EOF\n*** Begin Patch\n*** Add File: b\n+x\nEOF":                        "invalid patch: line 4: the last line must be",
		"<<EOF\n*** Begin Patch\n*** Rename File: b\n*** End Patch\nEOF":          "invalid patch: line 3: ",
		"<<EOF\n*** Begin Patch\n*** Add File: b\n+x\n*** End Patch\nPATCH":       "invalid patch: line 1: ",
		// What other programs read as commands and as changes of modes, links and binaries.
		"1c\n!touch MARK\n.\nw\n": "invalid patch: line 1: ",
		"diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc\n": "invalid patch: line 1: ",
		"*** Begin Patch\n*** Environment ID: main\n*** End Patch":                                 "", // Codex with several environments
		"*** Begin Patch\n*** Add File: b\n+x\n*** Environment ID: main\n*** End Patch":            "invalid patch: line 4: ",
		"*** Begin Patch\n*** Environment ID: a\n*** Environment ID: b\n*** End Patch":             "invalid patch: line 3: ",
		"<<EOF\nEOF": "invalid patch: line 1: ", "<<EOF\n*** Begin Patch\n*** End Patch\nEOF": "",
	} {
		switch p, err := patch.Parse(text); {
		case want == "" && (err != nil || !p.IsEmpty()), want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestEnvironment reads a patch that says in which environment it is: there is one.
func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, plan(t, dir, "*** Environment ID: main\n*** Add File: n\n+x").Apply())
	must.Equal(t, "n", "x\n", string(must.Get(os.ReadFile(filepath.Join(dir, "n")))(t)))
}

// planOf plans a patch in a folder. The text lacks the first and the last line.
func planOf(dir, text string) (*patch.Plan, error) {
	p, err := patch.Parse("*** Begin Patch\n" + text + "\n*** End Patch")
	if err != nil {
		return nil, err
	}
	return p.Plan(patch.Folder{Path: dir}, dir)
}

// plan is [planOf] of a patch that can be planned.
func plan(t *testing.T, dir, text string) *patch.Plan {
	t.Helper()
	return must.Get(planOf(dir, text))(t)
}

func check(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Fatalf("%q, %v; want %q", got, err, want)
	}
}

func writeTree(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	must.OK(t, os.MkdirAll(dir, 0o777))
	for name, content := range files {
		path := filepath.Join(dir, name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(content), 0o666))
	}
}

// readTree returns the content of all files below top by their path from dir.
func readTree(t testing.TB, top, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil { // a link to no file
			to, noLink := os.Readlink(path)
			if b = []byte(to); noLink != nil {
				return err
			}
		}
		rel, err := filepath.Rel(dir, path)
		files[strings.Replace(rel, "../out", "../@OUT", 1)] = string(b)
		return err
	})
	must.OK(t, err)
	return files
}

func relative(dir string, changes map[string]protocol.FileChange) map[string]protocol.FileChange {
	out := map[string]protocol.FileChange{}
	cut := func(path string) string {
		return strings.Replace(strings.TrimPrefix(path, dir+"/"), "../out", "../@OUT", 1)
	}
	for path, change := range changes {
		if change.Update != nil && change.Update.MovePath != nil {
			to := cut(*change.Update.MovePath)
			change.Update.MovePath = &to
		}
		out[cut(path)] = change
	}
	return out
}

// TestPlanBounds plans small patches that would take hours without a bound.
func TestPlanBounds(t *testing.T) {
	const lines = 100_000
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "same"), []byte(strings.Repeat("x\n", lines)), 0o600))
	for name, tt := range map[string]struct{ sections, want string }{
		"many hunks that are far down":               {"*** Update File: same\n" + strings.Repeat("@@\n-\u00a0x\n", lines/2), "takes too long"},
		"a long hunk that almost matches everywhere": {"*** Update File: same\n@@\n" + strings.Repeat("-x\n", lines/2) + "-y\n", "takes too long"},
		"many updates of a large file":               {strings.Repeat("*** Update File: same\n@@\n-x\n+x\n", lines), "takes too long"},
		"many files": {
			func() string {
				var b strings.Builder
				for i := range 6000 {
					fmt.Fprintf(&b, "*** Add File: new%d\n+x\n", i)
				}
				return b.String()
			}(), "more than 5000 files",
		},
	} {
		if testing.Short() && tt.want == "takes too long" {
			continue // the race detector makes them take longer, and finds nothing in one goroutine
		}
		t.Run(name, func(t *testing.T) {
			if _, err := planOf(dir, strings.TrimSuffix(tt.sections, "\n")); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

// TestAnotherCase moves a file to its own name in other letters: a new name where letter case counts and where it does not, in
// which case nothing else is there. Other names of one file stay two files.
func TestAnotherCase(t *testing.T) {
	dir := t.TempDir()
	const toA = "*** Update File: a\n*** Move to: A\n@@\n-one\n+1"
	writeTree(t, dir, map[string]string{"a": "one\n"})
	p := plan(t, dir, toA)
	moved := map[string]protocol.FileChange{"a": {Update: &protocol.FileUpdate{UnifiedDiff: "@@ -1 +1 @@\n-one\n+1\n", MovePath: new("A")}}}
	must.Equal(t, "changes", moved, relative(dir, p.Changes()))
	must.OK(t, p.Apply())
	must.Equal(t, "files", map[string]string{"A": "1\n"}, readTree(t, dir, dir))

	dir = t.TempDir()
	writeTree(t, dir, map[string]string{"a": "one\n"})
	if err := os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "A")); err != nil {
		if !errors.Is(err, fs.ErrExist) { // letter case does not count here
			t.Fatal(err)
		}
		return
	}
	p = plan(t, dir, toA)
	two := map[string]protocol.FileChange{
		"a": {Delete: &protocol.FileContent{Content: "one\n"}}, "A": {Update: &protocol.FileUpdate{UnifiedDiff: "@@ -1 +1 @@\n-one\n+1\n", Replaces: true}},
	}
	must.Equal(t, "changes of two files", two, relative(dir, p.Changes()))
	must.OK(t, p.Apply())
	must.Equal(t, "one of two files", map[string]string{"A": "1\n"}, readTree(t, dir, dir))
}
