package house_test

import (
	"go/ast"
	"testing"
)

// homes are the packages that alone decide something small. A second copy differs from the first sooner or
// later, at a wrong byte or a path such as "/workshop" beside "/work".
var homes = []struct {
	home  string
	finds func(*ast.FuncDecl) bool
	free  map[string]string // other files that may have a copy, and why
}{
	{"internal/text", cutsText, map[string]string{
		"codexserver/internal/transcript/output.go": "looks for the beginning of a character whose rest comes later",
		"codexserver/internal/transcript/store.go":  "counts the bytes of a character whose beginning is gone",
		"examples/review/main.go":                   "is an example for other modules, which cannot import it",
	}},
	{"internal/paths", comparesPaths, map[string]string{
		"examples/policy/policy.go": "is an example for other modules, which cannot import it",
	}},
	{"internal/webaddr", asksForLoopback, nil},
}

func TestHelpersHaveOneHome(t *testing.T) {
	all := sources(t)
	for _, h := range homes {
		found := map[string]bool{}
		for _, s := range all {
			for _, d := range s.syntax.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || s.test || s.pkg == h.home || !h.finds(f) {
					continue
				}
				found[s.file] = true
				if h.free[s.file] == "" {
					t.Errorf("%s: %s does by itself what %s is for", s.file, f.Name.Name, h.home)
				}
			}
		}
		for file := range h.free {
			if !found[file] {
				t.Errorf("%s has no copy of %s any more: remove it from the list", file, h.home)
			}
		}
	}
}

// cutsText reports whether a function looks for the beginning of a character.
func cutsText(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		found = found || names(n, "utf8", "RuneStart")
		return true
	})
	return found
}

// asksForLoopback reports whether a function asks if an address is that of this machine.
func asksForLoopback(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		x, ok := n.(*ast.SelectorExpr)
		found = found || ok && x.Sel.Name == "IsLoopback"
		return true
	})
	return found
}

// comparesPaths reports whether a function asks if a path that filepath.Rel returned is local.
func comparesPaths(f *ast.FuncDecl) (found bool) {
	relative := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			call, ok := n.Rhs[0].(*ast.CallExpr)
			if to, named := n.Lhs[0].(*ast.Ident); ok && named && names(call.Fun, "filepath", "Rel") {
				relative[to.Name] = true
			}
		case *ast.CallExpr:
			if names(n.Fun, "filepath", "IsLocal") {
				arg, ok := n.Args[0].(*ast.Ident)
				found = found || ok && relative[arg.Name]
			}
		}
		return true
	})
	return found
}

// names reports whether a node is the name of a package's function.
func names(n ast.Node, pkg, name string) bool {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}
