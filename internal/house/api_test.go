package house_test

import (
	"fmt"
	"go/types"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestAPI compares what the public packages export with the files under internal/house/api,
// one fact per line. docs/releasing.md says which changes a version may bring.
func TestAPI(t *testing.T) {
	root(t)
	const dir = "internal/house/api/"
	public := exported(t)
	if *update {
		must.OK(t, os.RemoveAll(dir))
	}
	for path, p := range public {
		got := facts(p)
		for _, f := range got {
			if strings.Contains(f, "/internal/") {
				t.Errorf("%s: users cannot name an internal type: %s", path, f)
			}
		}
		if *update {
			write(t, dir+path+".txt", got)
			continue
		}
		golden, _ := os.ReadFile(dir + path + ".txt") // a new package has none
		compare(t, path, strings.Split(strings.TrimSpace(string(golden)), "\n"), got)
	}
	for _, file := range files(t, ".txt") {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(file, ".txt"), dir); ok && public[path] == nil {
			t.Errorf("%s: the package no longer exists", file)
		}
	}
	if t.Failed() {
		t.Log("if this is intended, run go test ./internal/house -run API -update and add a line to CHANGELOG.md; " +
			"removed and changed names, and new methods in interfaces that users implement, need a minor version")
	}
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
	add := func(format string, args ...any) { all = append(all, unnamed(fmt.Sprintf(format, args...))) }
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

// unnamed returns a fact without the names that the compiler gives to some results without a name.
func unnamed(fact string) string {
	before, results, ok := strings.Cut(fact, "(#rv1 ")
	switch {
	case !ok:
		return fact
	case !strings.Contains(results, ", #rv2 "):
		return before + strings.TrimSuffix(results, ")")
	}
	return before + "(" + regexp.MustCompile(`#rv\d+ `).ReplaceAllString(results, "")
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
