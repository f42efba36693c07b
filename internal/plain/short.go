package plain

import (
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/internal/text"
)

// How much of one text is shown in a result, in bytes.
const (
	MaxName  = 100
	MaxPath  = 400
	MaxWords = 600

	maxStatus = 200 // characters of a status line
	// maxLooked bounds the bytes that are made readable before they are shortened.
	maxLooked = 8 << 10
)

// Short returns a text as one line with every control character visible, shortened to max
// bytes.
func Short(words string, max int) string {
	more := len(words) - maxLooked
	if more > 0 {
		words = words[:maxLooked]
	}
	shown, _, _ := Escape(words, "")
	return shorten(shown, max, more)
}

// ShortCommand is [Command] with at most max bytes.
func ShortCommand(argv []string, max int) string {
	more := -maxLooked - 1 // no space after the last word
	var words []string
	for _, word := range argv {
		if room := -more - 1; room > 0 {
			words = append(words, text.Head(word, room))
		}
		more += len(word) + 1
	}
	shown, _ := Command(words)
	return shorten(shown, max, more)
}

// Paths returns the first paths, and the number of all if there are more.
func Paths(paths []string) string {
	const most = 5
	var shown []string
	for _, path := range paths[:min(most, len(paths))] {
		shown = append(shown, Short(path, MaxPath/most))
	}
	if len(paths) > most {
		shown = append(shown, fmt.Sprintf("… (%d files)", len(paths)))
	}
	return strings.Join(shown, ", ")
}

// shorten replaces the middle of a text by a note if it is longer than max bytes. If more
// bytes followed the text before, it cuts the end instead.
func shorten(words string, max, more int) string {
	if len(words) <= max && more <= 0 {
		return words
	}
	const note = len("…9223372036854775807 bytes…")
	head, tail := text.Head(words, max-note), ""
	if more <= 0 {
		head, tail = text.Head(words, (max-note)*2/3), text.Tail(words, (max-note)/3)
		more = 0
	}
	return fmt.Sprintf("%s…%d bytes…%s", head, len(words)-len(head)-len(tail)+more, tail)
}

// Brief returns the first line of the words as a status line.
func Brief(words string) string {
	words, _, _ = strings.Cut(strings.TrimSpace(words), "\n")
	return Status(words)
}

// Status returns the words as a status line.
func Status(words string) string { return OneLine(words, maxStatus) }
