package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is a word of a script.
type word struct {
	// text is what the shell hands to the program.
	text string
	// raw is the same with its backslashes, but without its quotes.
	raw string
	// open is true when the shell may turn the word into others: it has a
	// pattern, braces or a tilde outside of quotes.
	open bool
}

// script is a parsed script: commands of plain words and what joins them.
type script struct {
	commands [][]word
	// ops[i] stands between commands[i] and commands[i+1]: "&&", "||", "|" or ";".
	ops []string
}

// bashScript gives the script of ["bash", "-lc", script].
func bashScript(argv []string) (string, bool) {
	if len(argv) != 3 || argv[0] != "bash" || argv[1] != "-lc" {
		return "", false
	}
	return argv[2], true
}

// parseScript parses a script that is nothing but commands of plain and quoted
// words, joined by &&, ||, ; and |. Anything more (a redirection, a variable, a
// substitution, an assignment, a background job, control flow) is not ok.
func parseScript(text string) (script, bool) {
	if strings.ContainsAny(text, "\x00\r") {
		return script{}, false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil || len(file.Stmts) == 0 || len(file.Last) > 0 {
		return script{}, false
	}
	var s script
	for i, stmt := range file.Stmts {
		if i > 0 {
			s.ops = append(s.ops, ";")
		}
		if !s.add(stmt) {
			return script{}, false
		}
	}
	return s, true
}

func (s *script) add(stmt *syntax.Stmt) bool {
	if len(stmt.Comments) > 0 || stmt.Negated || stmt.Background || stmt.Coprocess || stmt.Disown || len(stmt.Redirs) > 0 {
		return false
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.BinaryCmd:
		switch cmd.Op {
		case syntax.AndStmt, syntax.OrStmt, syntax.Pipe:
		default:
			return false
		}
		if !s.add(cmd.X) {
			return false
		}
		s.ops = append(s.ops, cmd.Op.String())
		return s.add(cmd.Y)
	case *syntax.CallExpr:
		if len(cmd.Assigns) > 0 || len(cmd.Args) == 0 {
			return false
		}
		if _, bare := cmd.Args[0].Parts[0].(*syntax.Lit); !bare {
			return false // a quoted program hides what it is
		}
		words := make([]word, len(cmd.Args))
		for i, arg := range cmd.Args {
			w, ok := readWord(arg)
			if !ok {
				return false
			}
			words[i] = w
		}
		s.commands = append(s.commands, words)
		return true
	}
	return false
}

// readWord reads a word that is one literal or one quoted text. What the shell
// would compute, or put together, is not ok.
func readWord(w *syntax.Word) (word, bool) {
	if len(w.Parts) != 1 {
		return word{}, false
	}
	switch part := w.Parts[0].(type) {
	case *syntax.Lit:
		return readLiteral(part.Value)
	case *syntax.SglQuoted:
		return word{text: part.Value, raw: part.Value}, !part.Dollar
	case *syntax.DblQuoted:
		if part.Dollar || len(part.Parts) != 1 {
			return word{}, false
		}
		lit, ok := part.Parts[0].(*syntax.Lit)
		if !ok || strings.Contains(lit.Value, "\n") {
			return word{}, false
		}
		return word{text: unescapeQuoted(lit.Value), raw: lit.Value}, true
	}
	return word{}, false
}

// readLiteral takes the backslashes out of an unquoted word.
func readLiteral(lit string) (word, bool) {
	var b strings.Builder
	open := false
	for i := 0; i < len(lit); i++ {
		switch c := lit[i]; c {
		case '\\':
			if i++; i == len(lit) {
				return word{}, false
			}
			if lit[i] != '\n' {
				b.WriteByte(lit[i])
			}
			continue
		case '[', ']', '{', '}':
			return word{}, false
		case '*', '?', '~':
			open = true
		}
		b.WriteByte(lit[i])
	}
	return word{text: b.String(), raw: lit, open: open}, true
}

// unescapeQuoted takes the backslashes out of a text in double quotes, where a
// backslash stands for itself in front of most characters.
func unescapeQuoted(lit string) string {
	var b strings.Builder
	for i := 0; i < len(lit); i++ {
		if lit[i] == '\\' && i+1 < len(lit) && strings.IndexByte("$`\"\\", lit[i+1]) >= 0 {
			i++
		}
		b.WriteByte(lit[i])
	}
	return b.String()
}
