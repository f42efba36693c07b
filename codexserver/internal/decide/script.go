package decide

import (
	"errors"
	"iter"
	"runtime"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// MaxScript is the size in bytes of the longest text that is parsed. Linux passes no longer word to a program.
	MaxScript = 128 << 10

	piece     = 1 << 10 // bytes that the parser is given at once; a text of one piece cannot nest too deeply
	maxFrames = 4096    // functions that may have called each other when it is; a level of nesting takes about ten
)

// ErrScript is the error for a text that is longer than [MaxScript] or nested too deeply.
var ErrScript = errors.New("script: the text is too long or too deeply nested to be parsed")

// reader reads a text for the parser. It fails when the text is too long, or the parser is nested too deeply: a hostile
// text could otherwise use up the stack, which would end the whole program.
type reader struct {
	text *strings.Reader
	pc   [1]uintptr
}

// Read implements [io.Reader].
func (r *reader) Read(b []byte) (int, error) {
	if size := r.text.Size(); size > MaxScript || size > piece && runtime.Callers(maxFrames, r.pc[:]) > 0 {
		return 0, ErrScript
	}
	return r.text.Read(b[:min(len(b), piece)]) // the parser soon asks again
}

// ParseFile parses a script of bash. It fails with [ErrScript] for a text that is too long or too deeply nested.
func ParseFile(text string, options ...syntax.ParserOption) (*syntax.File, error) {
	return syntax.NewParser(append(options,
		syntax.Variant(syntax.LangBash))...).Parse(&reader{text: strings.NewReader(text)}, "")
}

// Statements returns the statements of a script of bash, perhaps before an error. For [ErrScript] see [ParseFile].
func Statements(text string) iter.Seq2[*syntax.Stmt, error] {
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).StmtsSeq(&reader{text: strings.NewReader(text)})
}

// ParseScript parses a script of nothing but commands of plain and quoted words, joined by &&, ||, ; and |.
func ParseScript(text string) (commands [][]Word, ok bool) {
	if strings.ContainsAny(text, "\x00\r") {
		return nil, false
	}
	file, err := ParseFile(text, syntax.KeepComments(true))
	if err != nil || len(file.Stmts) == 0 || len(file.Last) > 0 {
		return nil, false
	}
	for _, stmt := range file.Stmts {
		if commands, ok = add(commands, stmt); !ok {
			return nil, false
		}
	}
	return commands, true
}

func add(commands [][]Word, stmt *syntax.Stmt) ([][]Word, bool) {
	if len(stmt.Comments) > 0 || stmt.Negated || stmt.Background || stmt.Coprocess || stmt.Disown ||
		len(stmt.Redirs) > 0 {
		return nil, false
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.BinaryCmd:
		commands, ok := add(commands, cmd.X)
		if !ok || !slices.Contains([]syntax.BinCmdOperator{syntax.AndStmt, syntax.OrStmt, syntax.Pipe}, cmd.Op) {
			return nil, false
		}
		return add(commands, cmd.Y)
	case *syntax.CallExpr:
		words, ok := readCall(cmd)
		return append(commands, words), ok
	}
	return nil, false
}

// readCall reads the words of a command. It returns false if an assignment comes first.
func readCall(cmd *syntax.CallExpr) ([]Word, bool) {
	if len(cmd.Assigns) > 0 || len(cmd.Args) == 0 {
		return nil, false
	}
	if _, bare := cmd.Args[0].Parts[0].(*syntax.Lit); !bare {
		return nil, false // no plain script quotes the name of a program
	}
	words := make([]Word, len(cmd.Args))
	for i, arg := range cmd.Args {
		var ok bool
		if words[i], ok = readWord(arg); !ok {
			return nil, false
		}
	}
	return words, true
}
