package codexmcp_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/codexmcp/codexmcp"

// arrows lists, by pattern, which packages of the module a package may import. The first
// matching row counts; ARCHITECTURE.md has the picture.
var arrows = []struct {
	pkg     string
	imports []string
}{
	{"mcptypes", []string{"mcptypes/internal/codec"}},
	{"mcptypes/modern", []string{"mcptypes", "mcptypes/internal/codec"}},
	{"mcptypes/internal/*", nil},
	{"jsonrpc", []string{"mcptypes"}},
	{"jsonrpc/wsrpc", []string{"jsonrpc"}},
	{"internal/shellword", nil},
	{"elicit", []string{"internal/shellword", "jsonrpc", "mcptypes"}},
	{"gen", nil},
	{"internal/skips", nil},

	{"codexserver/protocol", nil},
	{"codexserver/engine", []string{"codexserver/protocol", "elicit"}},
	{"codexserver/engine/*", []string{"codexserver/engine", "codexserver/protocol", "elicit"}},
	{"codexserver", []string{"codexserver/approval", "codexserver/internal/board", "codexserver/engine", "codexserver/internal/git", "codexserver/internal/mcp", "codexserver/internal/report", "codexserver/internal/mcp/taskfile", "codexserver/internal/thread", "codexserver/internal/mcptool", "codexserver/internal/trusted", "codexserver/protocol", "elicit", "jsonrpc"}},
	{"codexserver/approval", []string{"codexserver/protocol", "elicit"}},
	{"codexserver/internal/board", []string{"codexserver/approval", "codexserver/internal/policy", "codexserver/protocol", "elicit"}},
	{"codexserver/internal/thread", []string{"codexserver/approval", "codexserver/internal/board", "codexserver/engine", "codexserver/internal/trail", "codexserver/protocol", "elicit"}},
	// A tool does not depend on the era of its call.
	{"codexserver/internal/mcptool", []string{"codexserver/approval", "codexserver/internal/board", "codexserver/engine", "codexserver/internal/config", "codexserver/internal/git", "codexserver/internal/gitinfo", "codexserver/internal/outputschema", "codexserver/internal/safefile", "codexserver/internal/report", "codexserver/internal/review", "codexserver/internal/stall", "codexserver/internal/thread", "codexserver/internal/trail", "codexserver/internal/trusted", "codexserver/internal/worktree", "codexserver/protocol", "elicit", "jsonrpc", "mcptypes"}},
	{"codexserver/internal/servertest", []string{"codexserver/approval", "codexserver/engine", "codexserver/protocol", "elicit", "jsonrpc", "mcptypes"}},
	{"codexserver/internal/mcp", []string{"codexserver/approval", "codexserver/engine", "codexserver/internal/board", "codexserver/internal/mcp/taskfile", "codexserver/internal/mcptool", "codexserver/internal/safefile", "codexserver/internal/thread", "codexserver/protocol", "elicit", "jsonrpc", "mcptypes", "mcptypes/modern"}},
	{"codexserver/internal/mcp/taskfile", []string{"codexserver/internal/safefile"}},
	{"codexserver/streamable", []string{"codexserver", "codexserver/internal/mcp", "jsonrpc", "mcptypes", "mcptypes/modern"}},
	{"codexserver/page", []string{"codexserver/approval", "codexserver/internal/stall", "codexserver/protocol", "elicit"}},
	{"codexserver/native/providertest", nil},
	{"codexserver/native", []string{"codexserver/engine", "codexserver/protocol", "codexserver/internal/*", "codexserver/native/internal/*", "elicit", "jsonrpc", "mcptypes"}},
	{"codexserver/appserver", []string{"codexserver/engine", "codexserver/protocol", "codexserver/internal/*", "elicit", "internal/shellword", "jsonrpc", "mcptypes"}},
	{"codexserver/native/internal/mcpclient", []string{"codexserver/protocol", "codexserver/internal/*", "elicit", "jsonrpc", "mcptypes"}},
	// The description of a command for display decides nothing, and no decision uses it.
	{"codexserver/native/internal/summary", []string{"codexserver/internal/policy", "codexserver/protocol", "internal/shellword"}},
	{"codexserver/native/internal/tool", []string{"codexserver/engine", "codexserver/internal/*", "codexserver/native/internal/model", "codexserver/native/internal/summary", "codexserver/protocol", "elicit"}},
	{"codexserver/native/internal/*", []string{"codexserver/protocol", "codexserver/internal/*", "codexserver/native/internal/*", "elicit"}},
	{"codexserver/cmd/codex-mcp/internal/access", []string{"codexserver/internal/config", "codexserver/streamable"}},
	{"codexserver/cmd/codex-mcp/internal/workers", []string{"codexserver/internal/config", "codexserver/internal/sandbox", "codexserver/streamable"}},
	{"codexserver/cmd/codex-mcp/internal/terminal", []string{"codexserver/protocol", "elicit", "jsonrpc", "mcptypes"}},
	{"codexserver/cmd/codex-mcp/internal/telemetry", []string{"codexserver", "codexserver/approval", "codexserver/engine", "codexserver/internal/safefile", "codexserver/protocol", "codexserver/streamable", "jsonrpc", "mcptypes", "mcptypes/modern"}},
	{"codexserver/internal/policy", []string{"codexserver/protocol"}},
	{"codexserver/internal/report", []string{"codexserver/approval", "codexserver/engine", "codexserver/internal/git", "codexserver/internal/gitinfo", "codexserver/internal/review", "codexserver/protocol", "elicit"}},
	{"codexserver/internal/review", []string{"elicit"}},
	{"codexserver/internal/changestest", []string{"codexserver/approval", "codexserver/internal/board", "codexserver/engine", "codexserver/internal/git", "codexserver/internal/safefile", "codexserver/internal/report", "codexserver/internal/thread", "codexserver/protocol"}},
	{"codexserver/internal/*", []string{"codexserver/protocol", "codexserver/internal/*", "elicit"}},
	{"codexserver/cmd/*", []string{"codexserver", "codexserver/approval", "codexserver/appserver", "codexserver/cmd/codex-mcp/internal/access", "codexserver/cmd/codex-mcp/internal/telemetry", "codexserver/cmd/codex-mcp/internal/terminal", "codexserver/cmd/codex-mcp/internal/workers", "codexserver/engine", "codexserver/internal/*", "codexserver/native", "codexserver/page", "codexserver/protocol", "codexserver/streamable", "elicit", "jsonrpc", "jsonrpc/wsrpc", "mcptypes"}},

	{"bench/*", []string{"codexserver", "codexserver/engine", "codexserver/native", "codexserver/native/providertest", "codexserver/protocol", "elicit", "jsonrpc"}},
	{"examples/elicit", []string{"elicit", "jsonrpc", "mcptypes"}},
	{"examples/websocket", []string{"jsonrpc", "jsonrpc/wsrpc"}},
	{"examples/*", []string{"codexserver", "codexserver/approval", "codexserver/appserver", "codexserver/engine", "codexserver/native", "codexserver/native/providertest", "codexserver/protocol", "elicit", "jsonrpc", "jsonrpc/wsrpc", "mcptypes"}},
}

// light are the packages that import no other module than the one for JSON.
var light = []string{"mcptypes", "mcptypes/internal/codec", "mcptypes/modern", "jsonrpc", "internal/shellword", "elicit", "codexserver/protocol"}

const jsonModule = "github.com/go-json-experiment/json"

type source struct {
	pkg, file string
	test      bool
	syntax    *ast.File
	lines     int
}

func TestImportArrows(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || s.pkg == "." {
			continue
		}
		row := slices.IndexFunc(arrows, func(a struct {
			pkg     string
			imports []string
		}) bool {
			return match(a.pkg, s.pkg)
		})
		if row < 0 {
			t.Errorf("%s: package %s has no row in arrows", s.file, s.pkg)
			continue
		}
		for _, imp := range s.syntax.Imports {
			to := strings.Trim(imp.Path.Value, `"`)
			if own, ok := strings.CutPrefix(to, module+"/"); ok {
				if own != s.pkg && !slices.ContainsFunc(arrows[row].imports, func(p string) bool { return match(p, own) }) {
					t.Errorf("%s: %s may not import %s", s.file, s.pkg, own)
				}
				continue
			}
			foreign := strings.Contains(strings.Split(to, "/")[0], ".")
			if foreign && slices.Contains(light, s.pkg) && to != jsonModule && !strings.HasPrefix(to, jsonModule+"/") {
				t.Errorf("%s: %s must stay light, but imports %s", s.file, s.pkg, to)
			}
		}
	}
}

// TestServerNeedsNoHTTP checks that a program that serves only standard input and output does
// not compile HTTP and tracing packages.
func TestServerNeedsNoHTTP(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./codexserver").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 50 {
		t.Fatalf("only %d packages found", len(deps))
	}
	for _, dep := range deps {
		if dep == "net/http" || strings.HasPrefix(dep, "go.opentelemetry.io/") {
			t.Errorf("package codexserver needs %s, which only codex-mcp http may need", dep)
		}
	}
}

func TestPackagesHaveDocsAndExamples(t *testing.T) {
	docs, examples, commands := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, s := range sources(t) {
		if s.syntax.Doc != nil && !s.test {
			docs[s.pkg] = true
		}
		docs[s.pkg] = docs[s.pkg] || false
		commands[s.pkg] = commands[s.pkg] || s.syntax.Name.Name == "main"
		for _, d := range s.syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test && strings.HasPrefix(f.Name.Name, "Example") {
				examples[s.pkg] = true
			}
		}
	}
	for pkg, documented := range docs {
		if pkg == "." {
			continue
		}
		if !documented {
			t.Errorf("package %s has no doc comment", pkg)
		}
		if !examples[pkg] && !commands[pkg] && !strings.Contains(pkg, "/internal/") {
			t.Errorf("package %s has no Example", pkg)
		}
	}
}

func TestFilesStaySmall(t *testing.T) {
	const limit = 700
	for _, s := range sources(t) {
		if s.lines > limit && !ast.IsGenerated(s.syntax) {
			t.Errorf("%s has %d lines, more than %d: it probably has more than one concept", s.file, s.lines, limit)
		}
	}
}

// TestExamplesStaySmall counts the lines of every example, including nested modules: people
// read an example from top to bottom.
func TestExamplesStaySmall(t *testing.T) {
	const limit = 120
	seen := 0
	err := filepath.WalkDir("examples", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".go" {
			return err
		}
		text, err := os.ReadFile(file)
		if lines := bytes.Count(text, []byte("\n")); lines > limit {
			t.Errorf("%s has %d lines, more than %d", file, lines, limit)
		}
		seen++
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 10 {
		t.Fatalf("only %d files found: the walk is wrong", seen)
	}
}

// TestTestsDoNotSleep also checks that a test says why it is skipped.
func TestTestsDoNotSleep(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, _ := sel.X.(*ast.Ident)
			switch {
			case x != nil && x.Name == "time" && sel.Sel.Name == "Sleep":
				t.Errorf("%s calls time.Sleep", s.file)
			case sel.Sel.Name == "SkipNow", sel.Sel.Name == "Skip" && len(call.Args) == 0:
				t.Errorf("%s skips a test without a reason", s.file)
			}
			return true
		})
	}
}

// sources parses every Go file of the module, except nested modules and testdata.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if file != "." && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil && file != "." {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		syntax, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		all = append(all, source{
			pkg: path.Dir(file), file: file, syntax: syntax,
			test:  strings.HasSuffix(file, "_test.go"),
			lines: fset.Position(syntax.FileEnd).Line,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("only %d Go files found: the walk is wrong", len(all))
	}
	return all
}

// match reports whether pkg matches the pattern: an exact path, or with /* any path below it.
func match(pattern, pkg string) bool {
	if below, ok := strings.CutSuffix(pattern, "/*"); ok {
		return strings.HasPrefix(pkg, below+"/")
	}
	return pattern == pkg
}
