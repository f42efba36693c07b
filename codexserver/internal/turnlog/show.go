package turnlog

import (
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	utf8text "github.com/codexmcp/codexmcp/internal/text"
)

// How much is shown of one text, in bytes.
const (
	maxCommand = 600
	maxName    = 100
	maxReason  = 200 // of a reroute
	MaxPath    = 400
	MaxWords   = 600
)

// MaxLooked bounds the bytes that are made readable before they are shortened.
const MaxLooked = 8 << 10

// onOneLine shows what breaks a line.
func onOneLine(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\n", `\n`), "\t", `\t`)
}

// Show returns a text as one line with every control character visible, shortened to max
// bytes.
func Show(text string, max int) string {
	more := len(text) - MaxLooked
	if more > 0 {
		text = text[:MaxLooked]
	}
	text = elicit.ShowText(text)
	return shorten(onOneLine(text), max, more)
}

// ShowCommand returns an argv as questions show it, shortened.
func ShowCommand(argv []string) string {
	var words []string
	room := MaxLooked
	for _, word := range argv {
		if room > 0 {
			words = append(words, word[:min(len(word), room)])
		}
		room -= len(word) + 1
	}
	return shorten(elicit.ShowCommand(words), maxCommand, -room-1) // no space after the last word
}

// ShowPaths returns the first paths, and the number of all if there are more.
func ShowPaths(paths []string) string {
	const most = 5
	var shown []string
	for _, path := range paths[:min(most, len(paths))] {
		shown = append(shown, Show(path, MaxPath/most))
	}
	if len(paths) > most {
		shown = append(shown, fmt.Sprintf("… (%d files)", len(paths)))
	}
	return strings.Join(shown, ", ")
}

// ShowChanges is ShowPaths for what a result says has changed.
func ShowChanges(list []protocol.Change) string {
	paths := make([]string, len(list))
	for i, one := range list {
		paths[i] = one.Path
	}
	return ShowPaths(paths)
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
