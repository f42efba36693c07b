package house_test

import (
	"go/ast"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// light are the packages that import no other module than the one for JSON.
var light = []string{"mcptypes", "mcptypes/internal/codec", "mcptypes/modern", "jsonrpc", "internal/shellword", "elicit", "codexserver/protocol"}

const jsonModule = "github.com/go-json-experiment/json"

// TestArrows compares which packages of the module each package imports, on any system, with
// arrows.txt. A line there is a package and its imports; the comments above it say why it may
// not have more.
func TestArrows(t *testing.T) {
	imports := map[string]map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		if imports[s.pkg] == nil {
			imports[s.pkg] = map[string]bool{}
		}
		for _, i := range s.syntax.Imports {
			to := strings.Trim(i.Path.Value, `"`)
			own, ok := strings.CutPrefix(to, module+"/")
			foreign := !ok && strings.Contains(strings.Split(to, "/")[0], ".")
			switch {
			case ok && own != s.pkg:
				imports[s.pkg][own] = true
			case foreign && slices.Contains(light, s.pkg) && to != jsonModule && !strings.HasPrefix(to, jsonModule+"/"):
				t.Errorf("%s: %s must stay light, but imports %s", s.file, s.pkg, to)
			}
		}
	}
	var got []string
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		got = append(got, strings.Join(append([]string{pkg + ":"}, slices.Sorted(maps.Keys(imports[pkg]))...), " "))
	}
	const file = "internal/house/arrows.txt"
	var want, above []string
	comments := map[string][]string{} // by package, "" for those above an empty line
	for line := range strings.Lines(read(t, file)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			above = append(above, line)
			continue
		}
		pkg, _, ok := strings.Cut(line, ":")
		comments[pkg], above = above, nil
		if ok {
			want = append(want, line)
		}
	}
	if !*update {
		compare(t, file, want, got)
		return
	}
	all := append(comments[""], "")
	for _, line := range got {
		pkg, _, _ := strings.Cut(line, ":")
		all = append(append(all, comments[pkg]...), line)
	}
	write(t, file, all)
}

// TestRoot checks that the root has few folders, each with its line in the layout of ARCHITECTURE.md, and that the
// repository has few modules.
func TestRoot(t *testing.T) {
	const folders, modules = 14, 7
	out, err := exec.Command("git", "ls-files").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, layout, _ := strings.Cut(read(t, "ARCHITECTURE.md"), "\n## Layout\n")
	layout, _, _ = strings.Cut(layout, "\n## ")
	root := map[string]bool{}
	for file := range strings.Lines(string(out)) {
		if folder, _, ok := strings.Cut(file, "/"); ok && folder[0] != '.' {
			root[folder] = true
		}
	}
	if len(root) < 5 || len(root) > folders {
		t.Errorf("the root has %d folders, want at most %d", len(root), folders)
	}
	for folder := range root {
		if !regexp.MustCompile(`(?m)^([a-z]+/ )?` + folder + `/ `).MatchString(layout) {
			t.Errorf("ARCHITECTURE.md has no line for %s/", folder)
		}
	}
	if n := len(files(t, ".mod")); n > modules {
		t.Errorf("there are %d modules, want at most %d", n, modules)
	}
}

// TestPackageComments checks that each package says in a comment what it does.
func TestPackageComments(t *testing.T) {
	said := map[string]bool{}
	for _, s := range sources(t) {
		said[s.pkg] = said[s.pkg] || s.syntax.Doc != nil
	}
	for pkg, ok := range said {
		if !ok {
			t.Errorf("package %s has no comment", pkg)
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
		docs[s.pkg] = docs[s.pkg] || s.syntax.Doc != nil && !s.test
		commands[s.pkg] = commands[s.pkg] || s.syntax.Name.Name == "main"
		for _, d := range s.syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test && strings.HasPrefix(f.Name.Name, "Example") {
				examples[s.pkg] = true
			}
		}
	}
	for pkg, documented := range docs {
		if !documented {
			t.Errorf("package %s has no doc comment", pkg)
		}
		if !examples[pkg] && !commands[pkg] && !strings.Contains("/"+pkg, "/internal/") {
			t.Errorf("package %s has no Example", pkg)
		}
	}
}

// TestFilesStaySmall counts the lines of every file, and of the examples, nested modules
// included: people read an example from top to bottom.
func TestFilesStaySmall(t *testing.T) {
	for _, s := range sources(t) {
		if s.lines > 700 && !ast.IsGenerated(s.syntax) {
			t.Errorf("%s has %d lines: it probably has more than one concept", s.file, s.lines)
		}
	}
	for _, file := range files(t, ".go") {
		if lines := strings.Count(read(t, file), "\n"); strings.HasPrefix(strings.TrimPrefix(file, "contrib/"), "examples/") && lines > 120 {
			t.Errorf("%s has %d lines, too many for an example", file, lines)
		}
	}
}

// TestSkipsHaveReasons checks that a test that is skipped says why.
func TestSkipsHaveReasons(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && s.test {
				sel, ok := call.Fun.(*ast.SelectorExpr)
				if ok && (sel.Sel.Name == "SkipNow" || sel.Sel.Name == "Skip" && len(call.Args) == 0) {
					t.Errorf("%s skips a test without a reason", s.file)
				}
			}
			return true
		})
	}
}
