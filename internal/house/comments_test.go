package house_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocsComments checks that the comments of what others can import make sense without the source: they
// name nothing that is unexported, and no file of the repository.
func TestDocsComments(t *testing.T) {
	word := regexp.MustCompile(`[A-Za-z_]\w*`)
	address := regexp.MustCompile(`https?://\S+`)
	file := regexp.MustCompile(`[\w./-]+\.(go|md|json|ndjson|txtar)\b|\binternal/\w+`)
	users := []string{"AGENTS.md", "auth.json", "home/codex-mcp/rules.json", "codex-mcp/rules.json"} // files of a user's
	for dir := range exported(t) {
		names, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		var parsed []*ast.File
		unexported := map[string]bool{}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, f)
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok {
					d.Body = nil // what is declared within says nothing
				}
				ast.Inspect(d, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok && !id.IsExported() && strings.ToLower(id.Name) != id.Name { // no word of English
						unexported[id.Name] = true
					}
					return true
				})
			}
		}
		p, err := doc.NewFromFiles(set, parsed, module+"/"+dir)
		if err != nil {
			t.Fatal(err)
		}
		check := func(name, text string) {
			for _, w := range word.FindAllString(text, -1) {
				if unexported[w] {
					t.Errorf("%s.%s: its comment names %s", dir, name, w)
				}
			}
			for _, f := range file.FindAllString(address.ReplaceAllString(text, ""), -1) {
				if !slices.Contains(users, f) {
					t.Errorf("%s.%s: its comment names the file %s", dir, name, f)
				}
			}
		}
		values := func(all []*doc.Value) {
			for _, v := range all {
				check(v.Names[0], v.Doc)
			}
		}
		functions := func(of string, all []*doc.Func) {
			for _, f := range all {
				check(of+f.Name, f.Doc)
			}
		}
		check("package", p.Doc)
		values(p.Consts)
		values(p.Vars)
		functions("", p.Funcs)
		for _, c := range p.Types {
			check(c.Name, c.Doc)
			values(c.Consts)
			values(c.Vars)
			functions(c.Name+".", append(c.Funcs, c.Methods...))
			ast.Inspect(c.Decl, func(n ast.Node) bool {
				if f, ok := n.(*ast.Field); ok { // without those that are unexported
					check(c.Name, f.Doc.Text()+" "+f.Comment.Text())
				}
				return true
			})
		}
	}
}
