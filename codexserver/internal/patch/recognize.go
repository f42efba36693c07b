package patch

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"mvdan.cc/sh/v3/syntax"
)

// Invocation is a command that applies a patch.
type Invocation struct {
	// Text is the patch.
	Text string
	// Dir is the folder that its paths are relative to. It is absolute, or relative to the
	// command's folder.
	Dir string
}

// Recognize finds the patch in a command that only applies one:
//
//	["apply_patch", PATCH]
//	["bash", "-lc", "apply_patch <<'EOF'\nPATCH\nEOF"]
//	["bash", "-lc", "apply_patch 'PATCH'"]
//	["bash", "-lc", "cd DIR && apply_patch <<'EOF'\nPATCH\nEOF"]
//
// The shell may also be sh or zsh, and have a path, the option -c, and the program applypatch. Such a command is not run as
// a program.
func Recognize(argv []string) (Invocation, bool) {
	switch {
	case len(argv) == 2 && isProgram(argv[0]):
		return Invocation{Text: argv[1]}, true
	case len(argv) == 3 && slices.Contains([]string{"bash", "sh", "zsh"}, filepath.Base(argv[0])) && (argv[1] == "-lc" || argv[1] == "-c"):
		return recognizeScript(argv[2])
	}
	return Invocation{}, false
}

func isProgram(name string) bool { return name == "apply_patch" || name == "applypatch" }

func recognizeScript(source string) (Invocation, bool) {
	file, err := decide.ParseFile(source)
	if err != nil || len(file.Stmts) != 1 {
		return Invocation{}, false
	}
	stmt, dir := file.Stmts[0], ""
	if and, ok := stmt.Cmd.(*syntax.BinaryCmd); ok && and.Op == syntax.AndStmt && isPlain(stmt) && len(stmt.Redirs) == 0 {
		words, ok := plainWords(and.X)
		if !ok || len(words) != 2 || words[0] != "cd" || len(and.X.Redirs) > 0 || strings.HasPrefix(words[1], "-") {
			return Invocation{}, false
		}
		stmt, dir = and.Y, words[1]
	}
	words, ok := plainWords(stmt)
	if ok && len(words) == 2 && isProgram(words[0]) && len(stmt.Redirs) == 0 {
		return Invocation{Text: words[1], Dir: dir}, true
	}
	if !ok || len(words) != 1 || !isProgram(words[0]) || len(stmt.Redirs) != 1 {
		return Invocation{}, false
	}
	doc := stmt.Redirs[0]
	indented := doc.Op == syntax.DashHdoc // its tabs in front of lines do not count
	if doc.Op != syntax.Hdoc && !indented || doc.N != nil || doc.Hdoc == nil {
		return Invocation{}, false
	}
	// Use the unparsed text up to the delimiter: a patch has no variables.
	delimiter, ok := plainWord(doc.Word)
	if !ok {
		return Invocation{}, false
	}
	var text strings.Builder
	for line := range strings.Lines(source[doc.Hdoc.Pos().Offset():]) {
		if indented {
			line = strings.TrimLeft(line, "\t")
		}
		if strings.TrimSuffix(line, "\n") == delimiter {
			break
		}
		text.WriteString(line)
	}
	return Invocation{Text: text.String(), Dir: dir}, true
}

func isPlain(stmt *syntax.Stmt) bool {
	return !stmt.Negated && !stmt.Background && !stmt.Coprocess && !stmt.Disown
}

// plainWords returns the words of a simple command, if the shell does not compute any.
func plainWords(stmt *syntax.Stmt) ([]string, bool) {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || !isPlain(stmt) || len(call.Assigns) > 0 {
		return nil, false
	}
	var words []string
	for _, arg := range call.Args {
		word, ok := plainWord(arg)
		if !ok {
			return nil, false
		}
		words = append(words, word)
	}
	return words, true
}

// plainWord returns the text of a word that is one literal or one quoted text.
func plainWord(word *syntax.Word) (string, bool) {
	if len(word.Parts) != 1 {
		return "", false
	}
	switch part := word.Parts[0].(type) {
	case *syntax.Lit:
		return part.Value, !strings.ContainsAny(part.Value, `\*?[]{}~`)
	case *syntax.SglQuoted:
		return part.Value, !part.Dollar
	case *syntax.DblQuoted:
		if part.Dollar || len(part.Parts) != 1 {
			return "", false
		}
		if lit, ok := part.Parts[0].(*syntax.Lit); ok {
			return lit.Value, !strings.Contains(lit.Value, `\`)
		}
	}
	return "", false
}

// In returns the absolute folder that the patch's paths are relative to, for a command in
// cwd.
func (i Invocation) In(cwd string) string {
	if filepath.IsAbs(i.Dir) {
		return i.Dir
	}
	return filepath.Join(cwd, i.Dir)
}
