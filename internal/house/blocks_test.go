package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/pelletier/go-toml/v2"
	"mvdan.cc/sh/v3/shell"
	"mvdan.cc/sh/v3/syntax"
)

// TestDocsBlocks checks that the code in the documents can be used as it is.
func TestDocsBlocks(t *testing.T) {
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			switch b.lang {
			case "json":
				if v := jsontext.Value(b.text); !v.IsValid() {
					t.Errorf("%s: not valid JSON", b.at)
				}
			case "toml":
				var v map[string]any
				if err := toml.Unmarshal([]byte(b.text), &v); err != nil {
					t.Errorf("%s: %v", b.at, err)
				}
			case "go":
				typeCheck(t, b)
			case "sh":
				commands(t, b.at, b.text)
			case "text": // a command and what it prints
				for line := range strings.Lines(b.text) {
					if command, ok := strings.CutPrefix(line, "$ "); ok {
						commands(t, b.at, command)
					}
				}
			case "haproxy", "bash": // a test runs it
			case "ini", "dockerfile", "yaml", "js":
			default:
				t.Errorf("%s: the block's language is %q", b.at, b.lang)
			}
		}
	}
}

// commands checks that the packages, flags, folders and steps of the gate in a script exist.
func commands(t *testing.T, at, script string) {
	t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(script), at)
	if err != nil {
		t.Errorf("%s: %v", at, err)
		return
	}
	dir := "."
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		var b strings.Builder
		if err := syntax.NewPrinter().Print(&b, &syntax.CallExpr{Args: call.Args}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "$(") { // the walk reaches the commands in it
			return true
		}
		args, err := shell.Fields(b.String(), func(string) string { return "x" })
		if err != nil {
			t.Errorf("%s: %v", at, err)
			return true
		}
		switch {
		case args[0] == "cd" && (args[1] == path.Base(module) || strings.HasPrefix(b.String(), "cd ~/")): // a clone of this repository, a folder of the reader
		case args[0] == "cd":
			dir = path.Join(dir, args[1])
			exists(t, at, dir)
		case args[0] == ".ci/run":
			for _, step := range args[1:] {
				if step == "STEP" || step == "nightly" || step == "COMMIT" && args[1] == "bench" {
					continue
				}
				if !strings.Contains(read(t, ".ci/run"), "step_"+step+"()") {
					t.Errorf("%s: the gate has no step %s", at, step)
				}
			}
		case strings.HasPrefix(args[0], ".ci/"):
			exists(t, at, args[0])
		case args[0] == "go" && slices.Contains([]string{"run", "install", "build", "test", "vet"}, args[1]):
			goCommand(t, at, dir, args[2:])
		}
		return true
	})
}

func goCommand(t *testing.T, at, dir string, args []string) {
	t.Helper()
	if i := slices.Index(args, "-C"); i >= 0 && i+1 < len(args) {
		dir = path.Join(dir, args[i+1])
	}
	for i, arg := range args {
		pkg, ok := strings.CutPrefix(arg, module+"/")
		if ok {
			pkg, _, _ = strings.Cut(pkg, "@")
		} else if arg == "." || strings.HasPrefix(arg, "./") {
			pkg = path.Join(dir, strings.TrimSuffix(arg, "/..."))
		} else {
			continue
		}
		exists(t, at, pkg)
		var source strings.Builder
		sources, _ := filepath.Glob(pkg + "/*.go")
		for _, file := range sources {
			source.WriteString(read(t, file))
		}
		for j, arg := range args[i+1:] {
			if arg[0] != '-' && args[i+j][0] != '-' { // the rest is for another program
				break
			}
			name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			testing := []string{"run", "update", "count", "bench", "race", "tags", "fuzz", "v"}
			if strings.HasPrefix(arg, "-") && !slices.Contains(testing, name) && !strings.Contains(source.String(), `"`+name+`"`) {
				t.Errorf("%s: %s has no flag -%s", at, pkg, name)
			}
		}
	}
}

// typeCheck type-checks a Go block: a whole file, or statements that may use a context named
// ctx and the project's packages by their names.
func typeCheck(t *testing.T, b block) {
	t.Helper()
	all := loaded(t)
	text := b.text
	if !strings.HasPrefix(text, "package ") {
		var imports strings.Builder
		imports.WriteString("import \"context\"\n")
		for path, p := range exported(t) {
			if strings.Contains(text, p.Name()+".") {
				fmt.Fprintf(&imports, "import %q\n", module+"/"+path)
			}
		}
		text = "package p\n" + imports.String() + "func _(ctx context.Context) {\n" + text + "}\n"
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, b.at, text, 0)
	if err != nil {
		t.Error(err)
		return
	}
	config := types.Config{
		Importer: importerFunc(func(path string) (*types.Package, error) {
			if p := all[path]; p != nil {
				return p, nil
			}
			return nil, fmt.Errorf("nothing in the module imports %s", path)
		}),
		Error: func(err error) {
			if !strings.Contains(err.Error(), "declared and not used") { // the rest is the reader's
				t.Error(err)
			}
		},
	}
	config.Check("snippet", fset, []*ast.File{file}, nil) // errors went to config.Error
}

type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }
