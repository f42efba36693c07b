package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// limits.txt lists what is against a rule today: a kind, a name and a number that may not grow. An
// entry that is no longer true must go. -update removes entries and lowers numbers; it adds nothing, so that a
// new entry needs a commit that says why.
const limitsFile = "internal/house/limits.txt"

// limit compares what a rule finds, by name, with the entries of a kind. why is the rule.
func limit(t *testing.T, kind, why string, found map[string]int) {
	t.Helper()
	text := read(t, limitsFile)
	allowed := map[string]int{}
	var kept []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != kind {
			kept = append(kept, line)
			continue
		}
		name := words[1]
		most, err := strconv.Atoi(words[2])
		if err != nil || allowed[name] != 0 {
			t.Fatalf("%s: want %s NAME NUMBER, each name once: %s", limitsFile, kind, line)
		}
		allowed[name] = most
		switch n := found[name]; {
		case n == 0 && !*update:
			t.Errorf("%s %s is gone: remove it from the list %s", kind, name, limitsFile)
		case n != 0:
			kept = append(kept, fmt.Sprintf("%s %s %d", kind, name, min(n, most)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		switch n, most := found[name], allowed[name]; {
		case most == 0:
			t.Errorf("%s %s %d is against a rule: %s", kind, name, n, why)
		case n > most:
			t.Errorf("%s %s %d was %d and may not grow: %s", kind, name, n, most, why)
		}
	}
	if *update {
		write(t, limitsFile, kept)
	}
}

// TestLimitFields counts the fields of structs, those of embedded structs of the module included. What is
// generated, has tags, as all that is read or written does, or is named for options may have more.
func TestLimitFields(t *testing.T) {
	const most = 16
	options := regexp.MustCompile(`(?i)(options|settings|flags|limits)$`)
	all, found := structs(sources(t)), map[string]int{}
	for name, s := range all {
		if n := all.fields(s); n > most && !s.wire && !options.MatchString(name) {
			found[name] = n
		}
	}
	if len(all) < 500 {
		t.Fatalf("only %d structs found", len(all))
	}
	limit(t, "fields", fmt.Sprintf("a struct with more than %d fields has more than one purpose", most), found)
}

// structType is a declared struct.
type structType struct {
	node *ast.StructType
	file source
	wire bool // generated, or with tags
}

// structTypes are by package and name.
type structTypes map[string]structType

func structs(all []source) structTypes {
	found := structTypes{}
	for _, s := range all {
		if s.test {
			continue
		}
		for _, d := range s.syntax.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range decl.Specs {
				spec, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if node, ok := spec.Type.(*ast.StructType); ok {
					tagged := slices.ContainsFunc(node.Fields.List, func(f *ast.Field) bool { return f.Tag != nil })
					found[s.pkg+"."+spec.Name.Name] = structType{node, s, tagged || ast.IsGenerated(s.syntax)}
				}
			}
		}
	}
	return found
}

// fields counts the fields of a struct.
func (all structTypes) fields(s structType) (n int) {
	for _, f := range s.node.Fields.List {
		n += max(1, len(f.Names))
		if f.Names != nil {
			continue
		}
		pkg, name, ok := strings.Cut(strings.TrimPrefix(types.ExprString(f.Type), "*"), ".")
		if !ok {
			pkg, name = "", pkg
		}
		if inner, ok := all[s.file.importOf(pkg)+"."+name]; ok {
			n += all.fields(inner) - 1
		}
	}
	return n
}

// importOf returns the package of the module that a file calls name, its own for "".
func (s source) importOf(name string) string {
	for _, i := range s.syntax.Imports {
		own, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module+"/")
		is := own[strings.LastIndex(own, "/")+1:]
		if i.Name != nil {
			is = i.Name.Name
		}
		if ok && is == name {
			return own
		}
	}
	if name == "" {
		return s.pkg
	}
	return ""
}

// TestLimitDefaults looks for two packages with a default of the same name and value.
func TestLimitDefaults(t *testing.T) {
	packages := map[string][]string{}
	for _, s := range sources(t) {
		for _, d := range s.syntax.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || s.test || decl.Tok != token.CONST {
				continue
			}
			for _, spec := range decl.Specs {
				spec := spec.(*ast.ValueSpec)
				for i, name := range spec.Names {
					name := strings.ToLower(name.Name)
					if i >= len(spec.Values) || !strings.HasPrefix(name, "default") {
						continue
					}
					key := name + "=" + strings.ReplaceAll(types.ExprString(spec.Values[i]), " ", "")
					if !slices.Contains(packages[key], s.pkg) {
						packages[key] = append(packages[key], s.pkg)
					}
				}
			}
		}
	}
	if len(packages) < 10 {
		t.Fatalf("only %d defaults found", len(packages))
	}
	found := map[string]int{}
	for key, in := range packages {
		if len(in) > 1 {
			found[key] = len(in)
		}
	}
	limit(t, "packages", "a default stands once", found)
}

// TestLimitReaders lists the files, those of nested modules included, that tell the beginning of a
// command from other events: each is one more place that follows what a turn does.
func TestLimitReaders(t *testing.T) {
	const event = "ExecCommandBegin"
	found := map[string]int{}
	for file, syntax := range code(t) {
		ast.Inspect(syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSwitchStmt:
				for _, c := range n.Body.List {
					if slices.ContainsFunc(c.(*ast.CaseClause).List, func(x ast.Expr) bool { return named(x, event) }) {
						found[file] = 1
					}
				}
			case *ast.TypeAssertExpr:
				if n.Type != nil && named(n.Type, event) {
					found[file] = 1
				}
			}
			return true
		})
	}
	limit(t, "reads", "the log, the engines and the programs that show events read them; nothing else does", found)
}

// code returns the files of the repository, those of nested modules included, without the tests.
func code(t *testing.T) map[string]*ast.File {
	t.Helper()
	all := map[string]*ast.File{}
	for _, file := range files(t, ".go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all[file] = syntax
	}
	return all
}

// named reports whether a type has that name, in any package.
func named(x ast.Expr, name string) bool {
	text := strings.TrimPrefix(types.ExprString(x), "*")
	return text[strings.LastIndex(text, ".")+1:] == name
}

// TestLimitMutexes counts the mutexes in the code, that of nested modules included.
func TestLimitMutexes(t *testing.T) {
	n := 0
	for _, syntax := range code(t) {
		ast.Inspect(syntax, func(node ast.Node) bool {
			if names(node, "sync", "Mutex") || names(node, "sync", "RWMutex") {
				n++
			}
			return true
		})
	}
	limit(t, "mutexes", "state that one goroutine owns needs no lock", map[string]int{"all": n})
}

// leaves are the packages of codexserver that the packages under it may import.
var leaves = []string{"codexserver/approval", "codexserver/engine", "codexserver/protocol", "codexserver/setting"}

// TestLimitImports checks that what is internal imports nothing of what is built on it, and that
// one of jsonrpc and mcptypes knows nothing of the other.
func TestLimitImports(t *testing.T) {
	found := map[string]int{}
	var arrows []string
	for _, s := range sources(t) {
		for _, i := range s.syntax.Imports {
			to, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module+"/")
			if !ok || s.test {
				continue
			}
			below := strings.HasPrefix(s.pkg, "internal/") || strings.HasPrefix(s.pkg, "codexserver/internal/")
			beside := strings.HasPrefix(s.pkg, "codexserver/internal/") && strings.HasPrefix(to, "codexserver/internal/")
			if below && !beside && within(to, "codexserver") && !slices.Contains(leaves, to) {
				found[s.pkg+"->"+to] = 1
			}
			for _, pair := range [][2]string{{"jsonrpc", "mcptypes"}, {"mcptypes", "jsonrpc"}} {
				arrow := pair[0] + " -> " + pair[1]
				if within(s.pkg, pair[0]) && within(to, pair[1]) && !slices.Contains(arrows, arrow) {
					arrows = append(arrows, arrow)
				}
			}
		}
	}
	if len(arrows) > 1 {
		t.Errorf("%s: only one of them may know the other", strings.Join(arrows, ", "))
	}
	limit(t, "imports", "of codexserver, what is internal imports only "+strings.Join(leaves, ", "), found)
}

// within reports whether a package is in a folder.
func within(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }
