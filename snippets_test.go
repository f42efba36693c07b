package codexmcp_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"strings"
	"testing"
)

// TestDocComments looks at what comments of the public packages, of programs and
// examples refer to: files, commands, and names in brackets.
func TestDocComments(t *testing.T) {
	public, all := exported(t), loaded(t)
	file := regexp.MustCompile(`\b(?:docs|examples)/[\w./-]*\w`)
	name := regexp.MustCompile(`\[\*?(?:([a-z]\w*)\.)?([A-Z]\w*)(?:\.([A-Z]\w*))?\]`)
	imports := map[string]map[string]*types.Package{} // by package and name, as go doc looks them up
	for _, s := range sources(t) {
		if imports[s.pkg] == nil {
			imports[s.pkg] = map[string]*types.Package{"": public[s.pkg]}
		}
		for _, i := range s.syntax.Imports {
			if p := all[strings.Trim(i.Path.Value, `"`)]; p != nil && !s.test {
				imports[s.pkg][p.Name()] = p
			}
		}
	}
	for _, s := range sources(t) {
		if s.test || strings.Contains(s.pkg, "internal/") {
			continue
		}
		for _, group := range s.syntax.Comments {
			for line := range strings.Lines(group.Text()) {
				for _, f := range file.FindAllString(line, -1) {
					exists(t, s.file, f)
				}
				if code, ok := strings.CutPrefix(line, "\t"); ok {
					if !strings.ContainsAny(code, "[(") && (strings.HasPrefix(code, "go ") || strings.HasPrefix(code, "cd ")) {
						commands(t, s.file, code)
					}
					continue
				}
				for _, m := range name.FindAllStringSubmatch(line, -1) {
					if pkg := imports[s.pkg][m[1]]; public[s.pkg] != nil && (pkg == nil || !has(pkg, m[2], m[3])) {
						t.Errorf("%s: %s leads nowhere", s.file, m[0])
					}
				}
			}
		}
	}
}

// typeCheck checks a Go block: a whole file, or statements of a function that
// has a context called ctx, in which packages of the project go by their names.
func typeCheck(t *testing.T, b block) {
	t.Helper()
	all := loaded(t)
	text := b.text
	if !strings.HasPrefix(text, "package ") {
		text = fragment(t, b.text)
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, b.at, text, 0)
	if err != nil {
		t.Errorf("%v", err)
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

func fragment(t *testing.T, statements string) string {
	var imports strings.Builder
	imports.WriteString("import \"context\"\n")
	for path, p := range exported(t) {
		if strings.Contains(statements, p.Name()+".") {
			fmt.Fprintf(&imports, "import %q\n", module+"/"+path)
		}
	}
	return "package p\n" + imports.String() + "func _(ctx context.Context) {\n" + statements + "}\n"
}

type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }
