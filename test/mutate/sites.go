package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// sourceFile is a file whose mutants are searched. A mutant adds text before and after what it
// changes, so that mutants nest.
type sourceFile struct {
	pkg    *pkg
	base   string
	source string
	syntax *ast.File
	loaded *packages.Package
	names  map[string]int // of the package's mutants, how often each occurs
	more   bool           // also change limits and lose errors

	before, after map[int]string // texts to insert, by offset; after ends what began earlier
	path          []ast.Node     // from the file to the node
	within        string         // the function or variable
}

// mutate returns the source with all mutants, and adds them to the package.
func (f *sourceFile) mutate() string {
	f.before, f.after = map[int]string{}, map[int]string{}
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.within = d.Name.Name
			if d.Recv != nil {
				receiver, _, _ := strings.Cut(f.text(d.Recv.List[0].Type), "[") // without type parameters
				f.within = strings.TrimLeft(receiver, "*") + "." + f.within
			}
		case *ast.GenDecl:
			if d.Tok != token.VAR {
				continue
			}
			f.within = f.text(d.Specs[0].(*ast.ValueSpec).Names[0])
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if n == nil {
				f.path = f.path[:len(f.path)-1]
				return true
			}
			if !f.visit(n) {
				return false
			}
			f.path = append(f.path, n)
			return true
		})
	}
	var b strings.Builder
	for i := range len(f.source) + 1 {
		b.WriteString(f.after[i] + f.before[i])
		if i < len(f.source) {
			b.WriteByte(f.source[i])
		}
	}
	return b.String()
}

func (f *sourceFile) offset(p token.Pos) int { return f.loaded.Fset.PositionFor(p, false).Offset }

func (f *sourceFile) text(n ast.Node) string { return f.source[f.offset(n.Pos()):f.offset(n.End())] }

// wrap puts text around a node. Outer nodes come first.
func (f *sourceFile) wrap(n ast.Node, before, after string) {
	f.before[f.offset(n.Pos())] += before
	f.after[f.offset(n.End())] = after + f.after[f.offset(n.End())]
}

// add adds a mutant and returns its number. The name does not depend on the line, so that the
// list of survivors stays true when other lines change.
func (f *sourceFile) add(at ast.Node, change string) int {
	name := f.pkg.path + "/" + f.base + " " + f.within + ": " + strings.Join(strings.Fields(change), " ")
	if len(name) > 200 {
		name = name[:200] + "…"
	}
	f.names[name]++
	if n := f.names[name]; n > 1 {
		name += fmt.Sprintf(" #%d", n)
	}
	m := &mutant{id: len(f.pkg.mutants) + 1, name: name, line: f.loaded.Fset.PositionFor(at.Pos(), false).Line}
	f.pkg.mutants = append(f.pkg.mutants, m)
	return m.id
}

func (f *sourceFile) parent() ast.Node {
	if len(f.path) == 0 {
		return nil
	}
	return f.path[len(f.path)-1]
}

// visit adds the mutants of one node, and reports whether its parts may have some.
func (f *sourceFile) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec, *ast.StructType, *ast.InterfaceType, *ast.ArrayType, *ast.FuncType, *ast.MapType:
		return false
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.FuncDecl:
		f.closeBody(n.Type, n.Body)
	case *ast.FuncLit:
		f.closeBody(n.Type, n.Body)
	case *ast.RangeStmt:
		f.enter(n.Body.Lbrace+1, n, "skip the loop over "+f.text(n.X))
	case *ast.CaseClause:
		f.clause(n)
	case ast.Stmt:
		f.statement(n)
	case ast.Expr:
		return f.expression(n)
	}
	return true
}

// closeBody ends a function with a statement that no path reaches, because a mutant of the last
// statement may not end it in the eyes of the compiler.
func (f *sourceFile) closeBody(t *ast.FuncType, body *ast.BlockStmt) {
	if body == nil || t.Results == nil || len(body.List) == 0 {
		return
	}
	if _, ok := body.List[len(body.List)-1].(*ast.ReturnStmt); !ok {
		f.before[f.offset(body.Rbrace)] += "; panic(`a mutant reached the end`) "
	}
}

// enter leaves a loop or a case at its start.
func (f *sourceFile) enter(at token.Pos, n ast.Node, change string) {
	f.before[f.offset(at)] += fmt.Sprintf(" if zzOn(%d) { break }; ", f.add(n, change))
}

// clause skips what a case does, unless its expressions are conditions, which have mutants.
func (f *sourceFile) clause(n *ast.CaseClause) {
	if len(f.path) < 2 || len(n.Body) == 0 {
		return
	}
	if s, ok := f.path[len(f.path)-2].(*ast.SwitchStmt); ok && s.Tag == nil && n.List != nil {
		return
	}
	name := "default"
	if len(n.List) > 0 {
		name = "case " + f.source[f.offset(n.List[0].Pos()):f.offset(n.List[len(n.List)-1].End())]
	}
	f.enter(n.Colon+1, n, "skip "+name)
}

// statement leaves out a statement of a block.
func (f *sourceFile) statement(n ast.Stmt) {
	switch p := f.parent().(type) {
	case *ast.BlockStmt:
	case *ast.CaseClause:
	case *ast.CommClause:
		if p.Comm == n {
			return
		}
	default:
		return
	}
	switch n := n.(type) {
	case *ast.ExprStmt:
		call, ok := n.X.(*ast.CallExpr)
		if !ok || f.boring(call) {
			return
		}
	case *ast.DeferStmt:
		if f.boring(n.Call) {
			return
		}
	case *ast.AssignStmt:
		if id, ok := n.Lhs[0].(*ast.Ident); n.Tok == token.DEFINE || ok && id.Name == "_" {
			return
		}
	case *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt:
	case *ast.BranchStmt:
		if n.Tok == token.FALLTHROUGH || n.Tok == token.GOTO {
			return
		}
	default:
		return
	}
	f.wrap(n, fmt.Sprintf("if !zzOn(%d) { ", f.add(n, "without "+f.text(n))), " }")
}

// boring reports whether a call only logs or locks, or must stay for the compiler. The race
// detector and not a test finds a missing lock.
func (f *sourceFile) boring(call *ast.CallExpr) bool {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name == "panic"
	case *ast.SelectorExpr:
		o := f.loaded.TypesInfo.Uses[fun.Sel]
		return o != nil && o.Pkg() != nil && (o.Pkg().Path() == "log/slog" || o.Pkg().Path() == "sync" && o.Name() != "Go")
	}
	return false
}

// expression adds the mutants of an expression.
func (f *sourceFile) expression(n ast.Expr) bool {
	if !f.isValue(n) {
		return true
	}
	tv := f.loaded.TypesInfo.Types[n]
	if f.more {
		f.lost(n, tv.Type)
		if f.double(n, tv) {
			return false
		}
	}
	switch e := n.(type) {
	case *ast.SelectorExpr:
		if f.constant(e, e.Sel) {
			return false
		}
	case *ast.Ident:
		if e.Name == "true" || e.Name == "false" {
			f.boolean(e)
			return false
		}
		if f.constant(e, e) {
			return false
		}
	case *ast.BasicLit:
		f.literal(e, tv.Type)
		return false
	case *ast.BinaryExpr:
		f.arithmetic(e, tv.Type)
	}
	if tv.Value == nil && isBool(tv.Type) {
		f.condition(n)
	}
	return true
}

// isValue reports whether an expression is read as a value where a call may stand.
func (f *sourceFile) isValue(n ast.Expr) bool {
	if f.loaded.TypesInfo.Types[n].IsType() {
		return false
	}
	switch p := f.parent().(type) {
	case *ast.AssignStmt:
		return !slices.Contains(p.Lhs, n)
	case *ast.IncDecStmt, *ast.LabeledStmt, *ast.BranchStmt, *ast.Field, *ast.GenDecl, *ast.ExprStmt, *ast.DeferStmt, *ast.GoStmt:
		return false
	case *ast.ValueSpec:
		return slices.Contains(p.Values, n)
	case *ast.RangeStmt:
		return n != p.Key && n != p.Value
	case *ast.UnaryExpr:
		return p.Op != token.AND
	case *ast.SelectorExpr:
		return n == p.X
	case *ast.CallExpr:
		return n != p.Fun
	case *ast.KeyValueExpr:
		if n != p.Key || len(f.path) < 2 {
			return true
		}
		literal, ok := f.path[len(f.path)-2].(*ast.CompositeLit)
		if !ok {
			return true
		}
		_, isMap := f.loaded.TypesInfo.Types[literal].Type.Underlying().(*types.Map)
		return isMap
	}
	return true
}

func isBool(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}

// condition forces the operands of && and ||, and other boolean values, to true and to false.
func (f *sourceFile) condition(n ast.Expr) {
	boundary := map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}
	switch e := n.(type) {
	case *ast.ParenExpr:
		return
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return
		}
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			return
		}
		if other, ok := boundary[e.Op]; ok {
			m := f.add(n, e.Op.String()+" is "+other+": "+f.text(n))
			x, y := f.text(e.X), f.text(e.Y)
			f.wrap(n, "(zzOn("+fmt.Sprint(m)+") && ("+x+" "+other+" "+y+") || zzOff("+fmt.Sprint(m)+") && (", "))")
		}
	}
	yes, no := f.add(n, "true: "+f.text(n)), f.add(n, "false: "+f.text(n))
	f.wrap(n, "((", fmt.Sprintf(") && !zzOn(%d) || zzOn(%d))", no, yes))
}

func (f *sourceFile) boolean(n *ast.Ident) {
	if !isBool(f.loaded.TypesInfo.Types[n].Type) {
		return
	}
	m := f.add(n, "not "+n.Name+" in "+f.text(f.parent()))
	f.wrap(n, fmt.Sprintf("zzPick(%d, ", m), fmt.Sprintf(", !%s)", n.Name))
}

// arithmetic exchanges plus and minus.
func (f *sourceFile) arithmetic(e *ast.BinaryExpr, t types.Type) {
	other := map[token.Token]string{token.ADD: "-", token.SUB: "+"}[e.Op]
	b, ok := t.(*types.Basic)
	if other == "" || !ok || b.Kind() != types.Int || !pure(e.X) || !pure(e.Y) || f.loaded.TypesInfo.Types[e].Value != nil {
		return
	}
	m := f.add(e, e.Op.String()+" is "+other+": "+f.text(e))
	f.wrap(e, fmt.Sprintf("zzPick(%d, ", m), fmt.Sprintf(", %s %s %s)", f.text(e.X), other, f.text(e.Y)))
}

// pure reports whether an expression may be evaluated twice.
func pure(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident, *ast.BasicLit:
		return true
	case *ast.SelectorExpr:
		return pure(e.X)
	case *ast.CallExpr:
		id, ok := e.Fun.(*ast.Ident)
		return ok && id.Name == "len" && pure(e.Args[0])
	}
	return false
}

// lost returns no error in the place of one.
func (f *sourceFile) lost(n ast.Expr, t types.Type) {
	r, ok := f.parent().(*ast.ReturnStmt)
	if !ok || r.Results[len(r.Results)-1] != n || t == types.Typ[types.UntypedNil] {
		return
	}
	for _, outer := range slices.Backward(f.path) {
		var of *ast.FieldList
		switch outer := outer.(type) {
		case *ast.FuncDecl:
			of = outer.Type.Results
		case *ast.FuncLit:
			of = outer.Type.Results
		default:
			continue
		}
		if len(r.Results) == of.NumFields() && f.text(of.List[len(of.List)-1].Type) == "error" {
			f.wrap(n, fmt.Sprintf("zzPick[error](%d, ", f.add(n, "lost: "+f.text(r))), ", nil)")
		}
		return
	}
}

// double doubles limits and times that have a name or a unit. It reports whether it did.
func (f *sourceFile) double(n ast.Expr, tv types.TypeAndValue) bool {
	if tv.Value == nil || tv.Value.Kind() != constant.Int || f.isConstant(f.parent()) || f.inCallOf("fmt", "errors", "make") {
		return false
	}
	if _, ok := n.(*ast.BasicLit); ok {
		return false
	}
	var name string
	switch t := tv.Type.(type) {
	case *types.Basic:
		name = t.Name()
	case *types.Named:
		name = t.String()
	}
	v, exact := constant.Int64Val(tv.Value)
	if (name != "int" && name != "int64" && name != "time.Duration") || !exact || v < 2 || v > 1<<40 || name == "time.Duration" && !f.imports("time") {
		return false
	}
	m := f.add(n, "twice "+f.text(n)+" in "+f.text(f.parent()))
	f.wrap(n, fmt.Sprintf("zzPick[%s](%d, ", name, m), fmt.Sprintf(", 2*%d)", v))
	return true
}

func (f *sourceFile) imports(path string) bool {
	return slices.ContainsFunc(f.syntax.Imports, func(i *ast.ImportSpec) bool { return i.Name == nil && i.Path.Value == `"`+path+`"` })
}

// literal changes numbers, and strings that something is compared with.
func (f *sourceFile) literal(e *ast.BasicLit, t types.Type) {
	if f.isConstant(f.parent()) {
		return
	}
	switch e.Kind {
	case token.INT:
		if b, ok := t.(*types.Basic); !ok || b.Kind() != types.Int || f.inCallOf("make") {
			return
		}
		m := f.add(e, "plus one: "+e.Value+" in "+f.text(f.parent()))
		f.wrap(e, fmt.Sprintf("zzPick(%d, ", m), " , 1+"+e.Value+")")
	case token.STRING:
		conversion, ok := f.conversion(t)
		if !ok || !f.compared(e) {
			return
		}
		m := f.add(e, "another string than "+e.Value)
		f.wrap(e, fmt.Sprintf("%s(zzPick(%d, string(", conversion, m), "), \"\\x00mutant\"))")
	}
}

// isConstant reports whether a node is an expression that the compiler computes.
func (f *sourceFile) isConstant(n ast.Node) bool {
	e, ok := n.(ast.Expr)
	return ok && f.loaded.TypesInfo.Types[e].Value != nil
}

func (f *sourceFile) inCallOf(names ...string) bool {
	call, ok := f.parent().(*ast.CallExpr)
	if !ok {
		return false
	}
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return slices.Contains(names, fun.Name)
	case *ast.SelectorExpr:
		return slices.Contains(names, f.text(fun.X)) && f.text(fun) != "strings.Join" && f.text(fun) != "strings.Repeat"
	}
	return false
}

// compared reports whether a string is in a table, a case, or an argument of a comparison.
func (f *sourceFile) compared(e *ast.BasicLit) bool {
	switch p := f.parent().(type) {
	case *ast.CaseClause:
		return slices.Contains(p.List, ast.Expr(e))
	case *ast.CompositeLit:
		return true
	case *ast.KeyValueExpr:
		return true
	}
	return f.inCallOf("strings", "slices", "maps") && !f.isAny(e)
}

// isAny reports whether an argument of a call becomes the value of an interface. The compiler infers
// that from a constant, and not from a call.
func (f *sourceFile) isAny(e ast.Expr) bool {
	call, ok := f.parent().(*ast.CallExpr)
	if !ok {
		return false
	}
	s, ok := f.loaded.TypesInfo.Types[call.Fun].Type.(*types.Signature)
	i := slices.Index(call.Args, e)
	return ok && i >= 0 && i < s.Params().Len() && types.IsInterface(s.Params().At(i).Type())
}

// conversion returns the name of a string type as the file writes it.
func (f *sourceFile) conversion(t types.Type) (string, bool) {
	if b, ok := t.(*types.Basic); ok {
		return "string", b.Kind() == types.String
	}
	named, ok := t.(*types.Named)
	if !ok {
		return "", false
	}
	b, ok := named.Underlying().(*types.Basic)
	if !ok || b.Kind() != types.String {
		return "", false
	}
	if named.Obj().Pkg() == f.loaded.Types {
		return named.Obj().Name(), true
	}
	for _, i := range f.syntax.Imports {
		if i.Name == nil && strings.Trim(i.Path.Value, `"`) == named.Obj().Pkg().Path() {
			return named.Obj().Pkg().Name() + "." + named.Obj().Name(), true
		}
	}
	return "", false
}

// constant exchanges a constant of a named type of the module for others of the type: all of
// them if they are few, the next one otherwise. It reports whether n is a constant.
func (f *sourceFile) constant(n ast.Expr, id *ast.Ident) bool {
	c, ok := f.loaded.TypesInfo.Uses[id].(*types.Const)
	if !ok {
		return false
	}
	named, ok := c.Type().(*types.Named)
	if !ok || named.Obj().Pkg() == nil || !strings.HasPrefix(named.Obj().Pkg().Path()+"/", f.loaded.Module.Path+"/") || c.Pkg() != named.Obj().Pkg() || f.isConstant(f.parent()) {
		return true
	}
	var all []*types.Const
	scope := c.Pkg().Scope()
	for _, name := range scope.Names() {
		if o, ok := scope.Lookup(name).(*types.Const); ok && types.Identical(o.Type(), named) && (o.Exported() || o.Pkg() == f.loaded.Types) {
			all = append(all, o)
		}
	}
	slices.SortStableFunc(all, func(a, b *types.Const) int { return cmp.Compare(a.Val().ExactString(), b.Val().ExactString()) })
	at := slices.Index(all, c)
	for i := 1; i < len(all) && (i == 1 || len(all) <= 5); i++ {
		other := all[(at+i)%len(all)].Name()
		text := strings.TrimSuffix(f.text(n), id.Name) + other
		m := f.add(n, id.Name+" is "+other+" in "+f.text(f.parent()))
		f.wrap(n, fmt.Sprintf("zzPick(%d, ", m), ", "+text+")")
	}
	return true
}
