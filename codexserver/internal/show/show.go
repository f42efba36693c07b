// Package show shows texts of others, such as models, files and commands, in the result of a turn and in its
// progress: on one line, every control character visible, and shortened.
package show

import (
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
	utf8text "github.com/codexmcp/codexmcp/internal/text"
)

// How much is shown of one text, in bytes.
const (
	MaxName    = 100
	MaxPath    = 400
	MaxWords   = 600
	maxCommand = 600
	maxLine    = 200 // characters of a status line
)

// maxLooked bounds the bytes that are made readable before they are shortened.
const maxLooked = 8 << 10

// Text returns a text as one line with every control character visible, shortened to max
// bytes.
func Text(text string, max int) string {
	more := len(text) - maxLooked
	if more > 0 {
		text = text[:maxLooked]
	}
	shown, _, _ := plain.Escape(text, "")
	return shorten(shown, max, more)
}

// Command returns an argv as questions show it, shortened.
func Command(argv []string) string { return Line(argv, maxCommand) }

// Line is Command with at most max bytes.
func Line(argv []string, max int) string {
	words, more := begin(argv, maxLooked)
	return shorten(elicit.ShowCommand(words), max, more)
}

// Begins returns the first words of a command, as far as a status line may show them.
func Begins(argv []string) []string {
	words, _ := begin(argv, 4*maxLine)
	return words
}

// begin returns the words in about the first so many bytes of a command, and how many more it has.
func begin(argv []string, most int) (words []string, more int) {
	more = -most - 1 // no space after the last word
	for _, word := range argv {
		if room := -more - 1; room > 0 {
			words = append(words, utf8text.Head(word, room))
		}
		more += len(word) + 1
	}
	return words, more
}

// Paths returns the first paths, and the number of all if there are more.
func Paths(paths []string) string {
	const most = 5
	var shown []string
	for _, path := range paths[:min(most, len(paths))] {
		shown = append(shown, Text(path, MaxPath/most))
	}
	if len(paths) > most {
		shown = append(shown, fmt.Sprintf("… (%d files)", len(paths)))
	}
	return strings.Join(shown, ", ")
}

// Changes is Paths for what a result says has changed.
func Changes(list []protocol.Change) string {
	paths := make([]string, len(list))
	for i, one := range list {
		paths[i] = one.Path
	}
	return Paths(paths)
}

// shorten replaces the middle of a text by a note if it is longer than max bytes. If more
// bytes followed the text before, it cuts the end instead.
func shorten(text string, max, more int) string {
	if len(text) <= max && more <= 0 {
		return text
	}
	const note = len("…9223372036854775807 bytes…")
	head, tail := utf8text.Head(text, max-note), ""
	if more <= 0 {
		head, tail = utf8text.Head(text, (max-note)*2/3), utf8text.Tail(text, (max-note)/3)
		more = 0
	}
	return fmt.Sprintf("%s…%d bytes…%s", head, len(text)-len(head)-len(tail)+more, tail)
}

// Path returns the path of a file whole, on one line. Git's quotes are around one with
// characters that a person would not see, or that begins with a quote, so that programs can
// read every path.
func Path(path string) string {
	switch {
	case len(path) > maxLooked:
		return Text(path, MaxPath)
	case strings.HasPrefix(path, `"`), Text(path, maxLooked) != path:
		return git.Quote(path)
	}
	return path
}

// Brief returns the first line of the words as a status line.
func Brief(words string) string {
	words, _, _ = strings.Cut(strings.TrimSpace(words), "\n")
	return Status(words)
}

// Status returns the words as a status line.
func Status(words string) string { return plain.OneLine(words, maxLine) }
