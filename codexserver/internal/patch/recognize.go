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
//	[PATCH]
//	["bash", "-lc", "apply_patch <<'EOF'\nPATCH\nEOF"]
//	["bash", "-lc", "apply_patch 'PATCH'"]
//	["bash", "-lc", "cat <<'EOF' | apply_patch\nPATCH\nEOF"]
//	["bash", "-lc", "apply_patch \"$(cat <<'EOF'\nPATCH\nEOF\n)\""]
//	["bash", "-lc", "cd DIR && apply_patch <<'EOF'\nPATCH\nEOF"]
//	["bash", "-lc", "set -e; apply_patch <<'EOF'\nPATCH\nEOF"]
//
// The shell may also be sh or zsh, and have a path and options that change nothing here, such as -e. The program may
// also be applypatch or apply-patch. Such a command is not run as a program.
func Recognize(argv []string) (Invocation, bool) {
	last := len(argv) - 1
	switch {
	case last == 0 && isBare(argv[0]):
		return Invocation{Text: argv[0]}, true
	case last == 1 && isProgram(argv[0]):
		return Invocation{Text: argv[1]}, true
	case last > 1 && slices.Contains([]string{"bash", "sh", "zsh"}, filepath.Base(argv[0])) && readsScript(argv[1:last]):
		return recognizeScript(argv[last])
	}
	return Invocation{}, false
}

func isProgram(name string) bool {
	return slices.Contains([]string{"apply_patch", "applypatch", "apply-patch"}, name)
}

// isBare reports whether a word or a script is a patch and nothing else. No program has such a name.
func isBare(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, beginPatch+"\n") && strings.HasSuffix(text, "\n"+endPatch)
}

// readsScript reports whether the options of a shell say that a script follows, and none changes what a patch does.
func readsScript(options []string) bool {
	options = slices.DeleteFunc(slices.Clone(options), func(o string) bool {
		return o == "--login" || o == "--norc" || o == "--noprofile"
	})
	return areModes(options, "ceulx") && slices.ContainsFunc(options, func(o string) bool { return strings.HasSuffix(o, "c") })
}

// areModes reports whether words are options of a shell that change nothing for a patch: these letters, and some by
// name behind an o.
func areModes(words []string, letters string) bool {
	name := false // the next word is one
	for _, word := range words {
		flags, is := strings.CutPrefix(word, "-")
		switch {
		case name && slices.Contains([]string{"errexit", "nounset", "pipefail"}, word):
			name = false
		case name || !is || flags == "":
			return false
		default:
			flags, name = strings.CutSuffix(flags, "o")
			if strings.Trim(flags, letters) != "" {
				return false
			}
		}
	}
	return !name
}

func recognizeScript(source string) (Invocation, bool) {
	if isBare(source) {
		return Invocation{Text: source}, true
	}
	file, err := decide.ParseFile(source)
	if err != nil {
		return Invocation{}, false
	}
	stmts := file.Stmts
	for len(stmts) > 1 && isSet(stmts[0]) {
		stmts = stmts[1:]
	}
	if len(stmts) != 1 {
		return Invocation{}, false
	}
	stmt, dir := stmts[0], ""
	if and, ok := binary(stmt, syntax.AndStmt); ok {
		words, ok := plainWords(and.X)
		switch {
		case isSet(and.X):
		case ok && len(words) == 2 && words[0] == "cd" && len(and.X.Redirs) == 0 && !strings.HasPrefix(words[1], "-"):
			dir = words[1]
		default:
			return Invocation{}, false
		}
		stmt = and.Y
	}
	text, ok := patchOf(source, stmt)
	return Invocation{Text: text, Dir: dir}, ok
}

// patchOf returns the patch that a statement applies.
func patchOf(source string, stmt *syntax.Stmt) (string, bool) {
	if pipe, ok := binary(stmt, syntax.Pipe); ok {
		words, ok := plainWords(pipe.Y)
		if !ok || len(words) != 1 || !isProgram(words[0]) || len(pipe.Y.Redirs) > 0 {
			return "", false
		}
		return document(source, pipe.X, isCat)
	}
	if call, ok := stmt.Cmd.(*syntax.CallExpr); ok && len(call.Args) == 2 && len(call.Assigns) == 0 && isPlain(stmt) && len(stmt.Redirs) == 0 {
		program, ok := plainWord(call.Args[0])
		if !ok || !isProgram(program) {
			return "", false
		}
		if inner := substituted(call.Args[1]); inner != nil {
			return document(source, inner, isCat)
		}
		return plainWord(call.Args[1])
	}
	return document(source, stmt, isProgram)
}

func isCat(name string) bool { return name == "cat" }

// isSet reports whether a statement only sets options of the shell that change nothing for a patch.
func isSet(stmt *syntax.Stmt) bool {
	words, ok := plainWords(stmt)
	return ok && len(words) > 1 && words[0] == "set" && len(stmt.Redirs) == 0 && areModes(words[1:], "eux")
}

// binary returns the two sides of a statement that only joins them by an operator.
func binary(stmt *syntax.Stmt, op syntax.BinCmdOperator) (*syntax.BinaryCmd, bool) {
	both, ok := stmt.Cmd.(*syntax.BinaryCmd)
	return both, ok && both.Op == op && isPlain(stmt) && len(stmt.Redirs) == 0
}

// substituted returns the only statement whose output is the word, or nil.
func substituted(word *syntax.Word) *syntax.Stmt {
	if len(word.Parts) != 1 {
		return nil
	}
	quoted, ok := word.Parts[0].(*syntax.DblQuoted)
	if !ok || quoted.Dollar || len(quoted.Parts) != 1 {
		return nil
	}
	inner, ok := quoted.Parts[0].(*syntax.CmdSubst)
	if !ok || inner.TempFile || inner.ReplyVar || len(inner.Stmts) != 1 {
		return nil
	}
	return inner.Stmts[0]
}

// document returns the here-document of a statement that has nothing else but a program.
func document(source string, stmt *syntax.Stmt, is func(program string) bool) (string, bool) {
	words, ok := plainWords(stmt)
	if !ok || len(words) != 1 || !is(words[0]) || len(stmt.Redirs) != 1 {
		return "", false
	}
	doc := stmt.Redirs[0]
	indented := doc.Op == syntax.DashHdoc // its tabs in front of lines do not count
	if doc.Op != syntax.Hdoc && !indented || doc.N != nil || doc.Hdoc == nil {
		return "", false
	}
	// Use the unparsed text up to the delimiter: a patch has no variables.
	delimiter, ok := plainWord(doc.Word)
	if !ok {
		return "", false
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
	return text.String(), true
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
