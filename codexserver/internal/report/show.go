package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/elicit"
)

// How much is shown of one text, in bytes.
const (
	maxCommand = 600
	maxPath    = 400
	maxWords   = 600
	maxName    = 100
)

// maxLooked bounds the bytes that are made readable before they are shortened.
const maxLooked = 8 << 10

// show returns a text as one line with every control character visible, shortened to max
// bytes.
func show(text string, max int) string {
	more := len(text) - maxLooked
	if more > 0 {
		text = text[:maxLooked]
	}
	text = elicit.ShowText(text)
	return shorten(strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(text), max, more)
}

// showCommand returns an argv as questions show it, shortened.
func showCommand(argv []string) string {
	var words []string
	room := maxLooked
	for _, word := range argv {
		if room > 0 {
			words = append(words, word[:min(len(word), room)])
		}
		room -= len(word) + 1
	}
	return shorten(elicit.ShowCommand(words), maxCommand, -room-1) // no space after the last word
}

// showPaths returns the first paths, and the number of all if there are more.
func showPaths(paths []string) string {
	const most = 5
	var shown []string
	for _, path := range paths[:min(most, len(paths))] {
		shown = append(shown, show(path, maxPath/most))
	}
	if len(paths) > most {
		shown = append(shown, fmt.Sprintf("… (%d files)", len(paths)))
	}
	return strings.Join(shown, ", ")
}

// shorten replaces the middle of a text by a note if it is longer than max bytes. If more
// bytes followed the text before, it cuts the end instead.
func shorten(text string, max, more int) string {
	if len(text) <= max && more <= 0 {
		return text
	}
	const note = len("…9223372036854775807 bytes…")
	head, tail := clip(text, max-note), ""
	if more <= 0 {
		head = clip(text, (max-note)*2/3)
		tail = text[len(text)-(max-note)/3:]
		for range utf8.UTFMax - 1 {
			if tail != "" && !utf8.RuneStart(tail[0]) {
				tail = tail[1:]
			}
		}
		more = 0
	}
	return fmt.Sprintf("%s…%d bytes…%s", head, len(text)-len(head)-len(tail)+more, tail)
}

// clip returns at most n bytes of a text. It does not split the last character.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for range utf8.UTFMax - 1 {
		if n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
	}
	return text[:n]
}
