package house_test

import (
	"go/ast"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// light are the packages that import no other module than the one for JSON.
var light = []string{"mcptypes", "mcptypes/internal/codec", "mcptypes/modern", "jsonrpc", "elicit", "codexserver/protocol", "internal/shellword"}

const jsonModule = "github.com/go-json-experiment/json"

// TestArrows compares which packages of the module each package imports, on any system, with arrows.txt. A line there is a
// package and its imports; the comments above it say why it may not have more.
func TestArrows(t *testing.T) {
	root(t)
	imports := map[string]map[string]bool{}
	for _, s := range sources(t) {
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

// TestServerNeedsNoHTTP checks that a program that serves only standard input and output does
// not compile HTTP and tracing packages.
func TestServerNeedsNoHTTP(t *testing.T) {
	root(t)
	testenv.NeedsPrograms(t, "go")
	out := must.Get(exec.Command("go", "list", "-deps", "./codexserver").Output())(t)
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

// readers are packages that may open files directly, because the files are their own or the
// kernel's. All other packages below codexserver import safefile.
var readers = []string{
	"codexserver/internal/history/",                 // what a test's server has left
	"codexserver/internal/run/",                     // what /proc says of processes, folders as descriptors
	"codexserver/internal/box/",                     // folders as descriptors, what /proc says
	"codexserver/internal/mcp/process_linux.go",     // what /proc says of a process
	"codexserver/internal/servertest/",              // what tests look at
	"codexserver/cmd/codex-mcp/logfile.go",          // files that the user's flags name, for writing
	"codexserver/cmd/codex-mcp/internal/shared/",    // files in its own folder, what /proc says
	"codexserver/internal/git/mirror.go",            // folders and indexes of its own, for locking and writing
	"codexserver/internal/worker/decisions.go",      // a file of its own, for writing
	"codexserver/internal/worker/workertest/",       // a test's server, what it wrote
	"codexserver/native/internal/rollout/writer.go", // conversations, for writing
}

// TestFilesAreReadByOneReader looks for functions of os that can block or read without end: a file
// whose name comes from a workspace, a configuration or a client can be a named pipe, a device or endless.
func TestFilesAreReadByOneReader(t *testing.T) {
	root(t)
	const protected = "codexserver/internal/box/protect.go" // reads what a workspace has
	for _, s := range sources(t) {
		free := slices.ContainsFunc(readers, func(reader string) bool { return strings.HasPrefix(s.file, reader) })
		if !strings.HasPrefix(s.pkg, "codexserver") || free && s.file != protected {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Open", "OpenFile", "ReadFile", "DirFS"}, sel.Sel.Name) {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "os" {
				t.Errorf("%s calls os.%s: use package safefile", s.file, sel.Sel.Name)
			}
			return true
		})
	}
}

// TestProgramsAreWrittenByOneWriter looks for tests that write a program in another way than [testenv.WriteProgram].
func TestProgramsAreWrittenByOneWriter(t *testing.T) {
	root(t)
	program := regexp.MustCompile(`os\.WriteFile\(([^()]|\([^()]*\))*, 0o[1357]\d\d\)`)
	for _, file := range files(t, ".go") {
		if !strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "codexserver/gateway/") { // of another module
			continue
		}
		for _, line := range program.FindAllString(read(t, file), -1) {
			t.Errorf("%s: use testenv.WriteProgram: %s", file, line)
		}
	}
}
