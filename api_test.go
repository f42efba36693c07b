package codexmcp_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"
)

var update = flag.Bool("update", false, "rewrite the files under api")

// TestAPI compares what the public packages export with the files under api,
// one fact per line. docs/releasing.md says which changes a version may bring.
func TestAPI(t *testing.T) {
	old := map[string]bool{}
	err := filepath.WalkDir("api", func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			old[filepath.ToSlash(file)] = true
		}
		return err
	})
	if err != nil && !*update {
		t.Fatal(err)
	}
	for path, p := range exported(t) {
		file := "api/" + path + ".txt"
		delete(old, file)
		got := facts(p)
		for _, f := range got {
			if strings.Contains(f, "/internal/") {
				t.Errorf("%s: users cannot name an internal type: %s", path, f)
			}
		}
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		golden, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("a new package: %v", err)
			continue
		}
		want := strings.Split(strings.TrimSpace(string(golden)), "\n")
		var diff strings.Builder
		for _, f := range minus(want, got) {
			fmt.Fprintf(&diff, "\t- %s\n", f)
		}
		for _, f := range minus(got, want) {
			fmt.Fprintf(&diff, "\t+ %s\n", f)
		}
		if diff.Len() > 0 {
			t.Errorf("the API of %s changed:\n%s", path, &diff)
		}
	}
	for file := range old {
		if !*update {
			t.Errorf("%s: the package no longer exists", file)
		} else if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if t.Failed() {
		t.Log("if this is intended, run go test . -run API -update and add a line to CHANGELOG.md; removed and changed names, and new methods in interfaces that users implement, need a minor version")
	}
}

// minus returns the elements of a that are not in b.
func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// facts returns the exported names of a package, sorted.
func facts(p *types.Package) []string {
	q := func(other *types.Package) string {
		if other == p {
			return ""
		}
		return strings.TrimPrefix(other.Path(), module+"/")
	}
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		text := types.ObjectString(o, q)
		switch o := o.(type) {
		case *types.Const:
			add("%s = %s", strings.TrimSuffix(text, " = "+o.Val().String()), o.Val().ExactString())
		case *types.TypeName:
			named, ok := o.Type().(*types.Named)
			if o.IsAlias() || !ok {
				add("%s", text)
				break
			}
			typeFacts(add, named, q)
		default:
			add("%s", text)
		}
	}
	slices.Sort(all)
	return all
}

func typeFacts(add func(string, ...any), named *types.Named, q types.Qualifier) {
	text := "type " + types.TypeString(named, q)
	switch u := named.Underlying().(type) {
	case *types.Struct:
		add("%s struct", text)
		for i := range u.NumFields() {
			f := u.Field(i)
			if !f.Exported() {
				continue
			}
			field := f.Name() + " "
			if f.Embedded() {
				field = "embedded "
			}
			field += types.TypeString(f.Type(), q)
			if tag := u.Tag(i); tag != "" {
				field += " `" + tag + "`"
			}
			add("%s struct, %s", text, field)
		}
	case *types.Interface:
		add("%s interface", text)
		for m := range u.ExplicitMethods() {
			if m.Exported() {
				add("%s interface, %s%s", text, m.Name(), strings.TrimPrefix(types.TypeString(m.Type(), q), "func"))
			} else {
				add("%s interface, unexported methods", text)
			}
		}
		for e := range u.EmbeddedTypes() {
			add("%s interface, embedded %s", text, types.TypeString(e, q))
		}
	default:
		add("%s %s", text, types.TypeString(u, q))
	}
	for m := range named.Methods() {
		if m.Exported() {
			recv := types.TypeString(m.Signature().Recv().Type(), q)
			add("method (%s) %s%s", recv, m.Name(), strings.TrimPrefix(types.TypeString(m.Type(), q), "func"))
		}
	}
}

// TestEveryNameIsDocumented checks every name that users can write, including fields and
// methods. The comment of a group counts for its constants and variables. A comment that
// mentions another field of its type counts for that field.
func TestEveryNameIsDocumented(t *testing.T) {
	public := exported(t)
	for _, s := range sources(t) {
		if public[s.pkg] == nil || s.test {
			continue
		}
		missing := func(name string) { t.Errorf("%s: %s has no comment", s.file, name) }
		for _, d := range s.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || ast.IsExported(receiver(d))) {
					missing(d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if !spec.Name.IsExported() {
							continue
						}
						if spec.Doc == nil && d.Doc == nil {
							missing(spec.Name.Name)
						}
						members(spec.Name.Name, spec.Type, d.Doc.Text()+spec.Doc.Text(), missing)
					case *ast.ValueSpec:
						if spec.Names[0].IsExported() && spec.Doc == nil && spec.Comment == nil && d.Doc == nil {
							missing(spec.Names[0].Name)
						}
					}
				}
			}
		}
	}
}

// members returns the exported fields and methods of a type that no comment mentions, doc
// included.
func members(path string, x ast.Expr, doc string, missing func(string)) {
	var list *ast.FieldList
	switch x := x.(type) {
	case *ast.StructType:
		list = x.Fields
	case *ast.InterfaceType:
		list = x.Methods
	default:
		return
	}
	for _, f := range list.List {
		doc += f.Doc.Text()
	}
	for _, f := range list.List {
		for _, name := range f.Names { // embedded types have their own comments
			if !name.IsExported() {
				continue
			}
			named := regexp.MustCompile(`\b` + name.Name + `\b`).MatchString(doc)
			if !named && f.Comment == nil && (f.Doc == nil || len(f.Names) > 1) {
				missing(path + "." + name.Name)
			}
			members(path+"."+name.Name, f.Type, "", missing)
		}
	}
}

func receiver(d *ast.FuncDecl) string {
	x := d.Recv.List[0].Type
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.IndexListExpr:
			x = y.X
		default:
			return x.(*ast.Ident).Name
		}
	}
}

// exported returns the packages that users can import, by the path within the module.
func exported(t *testing.T) map[string]*types.Package {
	t.Helper()
	all := map[string]*types.Package{}
	for path, p := range loaded(t) {
		own, ok := strings.CutPrefix(path, module+"/")
		if ok && p.Name() != "main" && !strings.Contains(own, "internal/") {
			all[own] = p
		}
	}
	if len(all) < 10 {
		t.Fatalf("only %d packages found", len(all))
	}
	return all
}

// loaded returns every package of the module and its imports.
func loaded(t *testing.T) map[string]*types.Package {
	t.Helper()
	all, err := loadOnce()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var loadOnce = sync.OnceValues(func() (map[string]*types.Package, error) {
	mode := packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps
	roots, err := packages.Load(&packages.Config{Mode: mode}, "./...")
	if err != nil {
		return nil, err
	}
	all := map[string]*types.Package{}
	packages.Visit(roots, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			err = e
		}
		all[p.PkgPath] = p.Types
	})
	return all, err
})
