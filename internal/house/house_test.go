package house_test

import (
	"flag"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

const module = "github.com/codexmcp/codexmcp"

var update = flag.Bool("update", false, "rewrite the files under internal/house/api, arrows.txt and program.txt")

func TestMain(m *testing.M) {
	testenv.Forget()
	os.Exit(m.Run())
}

// root makes a test run in the root of the repository. After a change of what it reads there, go test runs it again: of a
// change of the folder in TestMain go test would not know.
func root(t *testing.T) {
	t.Helper()
	t.Chdir("../..")
}

// files returns the paths of the repository's files with the extension, including those of nested modules.
func files(t *testing.T, ext string) []string {
	t.Helper()
	var all []string
	must.OK(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			other := []string{"testdata", "node_modules", "dist", "prompts"}
			if name := d.Name(); name != "." && (name[0] == '.' || slices.Contains(other, name)) {
				return filepath.SkipDir
			}
		case filepath.Ext(file) == ext:
			all = append(all, filepath.ToSlash(file))
		}
		return nil
	}))
	if len(all) < 5 {
		t.Fatalf("only %d files %s found: the walk is wrong", len(all), ext)
	}
	return all
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join(path...)))(t)
	return string(b)
}

// write writes a golden file.
func write(t *testing.T, file string, lines []string) {
	t.Helper()
	must.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must.OK(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
}

// compare reports the lines that only the golden file or only the code has.
func compare(t *testing.T, file string, want, got []string) {
	t.Helper()
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%s: - %s", file, line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s: + %s", file, line)
		}
	}
}

// source is a Go file of the module.
type source struct {
	pkg, file string
	syntax    *ast.File
}

// sources returns every Go file of the module, for every system, except tests and nested modules.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	var nested []string
	for _, file := range files(t, ".mod") {
		if file != "go.mod" {
			nested = append(nested, path.Dir(file)+"/")
		}
	}
	for _, file := range files(t, ".go") {
		within := func(dir string) bool { return strings.HasPrefix(file, dir) }
		if strings.HasSuffix(file, "_test.go") || slices.ContainsFunc(nested, within) {
			continue
		}
		syntax := must.Get(parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution))(t)
		all = append(all, source{path.Dir(file), file, syntax})
	}
	return all
}

// exported returns the packages that users can import, by the path within the module.
func exported(t *testing.T) map[string]*types.Package {
	t.Helper()
	all := map[string]*types.Package{}
	for path, p := range loaded(t) {
		own, ok := strings.CutPrefix(path, module+"/")
		if ok && p.Name() != "main" && p.Scope().Len() > 0 && !strings.Contains("/"+own, "/internal/") {
			all[own] = p
		}
	}
	if len(all) < 5 {
		t.Fatalf("only %d packages found", len(all))
	}
	return all
}

// loaded returns every package of the module that is no program, and their imports: not from the sources, but from what the compiler
// has written, which the build cache has after the tests are compiled.
func loaded(t *testing.T) map[string]*types.Package {
	t.Helper()
	testenv.NeedsPrograms(t, "go")
	all := must.Get(loadOnce())(t)
	return all
}

var loadOnce = sync.OnceValues(func() (map[string]*types.Package, error) {
	list := func(args ...string) ([]string, error) {
		out, err := exec.Command("go", append([]string{"list", "-f"}, args...)...).Output()
		return slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool { return line == "" }), err
	}
	roots, err := list(`{{if ne .Name "main"}}{{.ImportPath}}{{end}}`, "./...")
	if err != nil {
		return nil, err
	}
	lines, err := list(append([]string{"{{.ImportPath}}\t{{.Export}}", "-export", "-deps"}, roots...)...)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, line := range lines {
		if path, file, _ := strings.Cut(line, "\t"); file != "" { // a package of tests alone has none
			files[path] = file
		}
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	all := map[string]*types.Package{}
	for path := range files {
		if all[path], err = from.Import(path); err != nil {
			return nil, err
		}
	}
	return all, nil
})
