package moduleproxy_test

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/moduleproxy"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestEnvironment checks which files of the working tree the modules have: also those that git does not have yet, and
// none that were removed, are ignored, or belong to the other module.
func TestEnvironment(t *testing.T) {
	testenv.NeedsPrograms(t, "git")
	testenv.Forget()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module github.com/codexmcp/codexmcp\n", "a.go": "package a\n", "removed.go": "package a\n", ".gitignore": "/out\n", "out/x": "",
		"part/go.mod": "module github.com/codexmcp/codexmcp/part\n", "part/b.go": "package b\n", "partner/c.go": "package c\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "removed.go"}} {
		if out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	must.OK(t, os.Remove(filepath.Join(root, "removed.go")))
	proxy := ""
	for _, variable := range moduleproxy.Environment(t, root, "part") {
		if list, ok := strings.CutPrefix(variable, "GOPROXY=file://"); ok {
			proxy, _, _ = strings.Cut(list, ",")
		}
	}
	for module, want := range map[string][]string{
		"github.com/codexmcp/codexmcp":      {".gitignore", "a.go", "go.mod", "partner/c.go"},
		"github.com/codexmcp/codexmcp/part": {"b.go", "go.mod"},
	} {
		archive := must.Get(zip.OpenReader(filepath.Join(proxy, filepath.FromSlash(module), "@v", moduleproxy.Version+".zip")))(t)
		defer archive.Close()
		var got []string
		for _, f := range archive.File {
			name, ok := strings.CutPrefix(f.Name, module+"@"+moduleproxy.Version+"/")
			if !ok {
				t.Errorf("%s has %s", module, f.Name)
			}
			got = append(got, name)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", module, got, want)
		}
	}
}
