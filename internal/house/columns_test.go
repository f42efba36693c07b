package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// maxColumns is how wide a line of code may be, with tabs as four.
const maxColumns = 120

// TestColumns finds lines of code that are wider than [maxColumns]. Tests and generated files may have such lines, and the
// tag of a field, which is one word.
func TestColumns(t *testing.T) {
	root(t)
	for _, s := range sources(t) {
		positions := token.NewFileSet()
		mode := parser.ParseComments | parser.SkipObjectResolution
		syntax := must.Get(parser.ParseFile(positions, s.file, nil, mode))(t)
		if ast.IsGenerated(syntax) {
			continue
		}
		line := func(p token.Pos) int { return positions.Position(p).Line }
		code, tagged := map[int]bool{}, map[int]bool{}
		ast.Inspect(syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case nil, *ast.CommentGroup:
				return false
			case *ast.Field:
				if n.Tag != nil {
					tagged[line(n.Tag.Pos())] = true
				}
			}
			code[line(n.Pos())], code[line(n.End()-1)] = true, true
			return true
		})
		for i, text := range strings.Split(read(t, s.file), "\n") {
			wide := utf8.RuneCountInString(strings.ReplaceAll(text, "\t", "    "))
			if wide > maxColumns && code[i+1] && !tagged[i+1] {
				t.Errorf("%s:%d: %d columns are more than %d", s.file, i+1, wide, maxColumns)
			}
		}
	}
}
